# keeper PROJECT COMMAND...: creates a compose project by a command, says whether that went well, and takes the project down
# when its input ends. What is taken down is found by its label: nothing that was there before has it.
project=$1
shift
exec 2>&1
if "$@" </dev/null; then echo created; else echo failed; fi
cat >/dev/null
exec >/dev/null 2>&1
label="label=com.docker.compose.project=$project"
docker ps --all --quiet --filter "$label" | xargs -r docker rm --force --volumes
docker network ls --quiet --filter "$label" | xargs -r docker network rm
docker volume ls --quiet --filter "$label" | xargs -r docker volume rm

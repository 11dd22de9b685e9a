//! What the engine says of containers that were created (pure): where they listen, and that nothing
//! is at risk which was there before them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Deserialize;

/// What tells a service's name.
const SERVICE: &str = "com.docker.compose.service";

/// Where a server listens in its container.
const PORT: &str = "6379/tcp";

/// A container, as `docker inspect` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Created {
    pub(super) id: String,
    config: Config,
    host_config: HostConfig,
    mounts: Vec<Mount>,
    network_settings: NetworkSettings,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HostConfig {
    port_bindings: Option<BTreeMap<String, Option<Vec<Binding>>>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Binding {
    host_ip: String,
    host_port: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Mount {
    #[serde(default)]
    name: String,
    source: String,
    #[serde(rename = "RW")]
    writable: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NetworkSettings {
    networks: BTreeMap<String, serde_json::Value>,
}

/// Reads what `docker inspect` says.
pub(super) fn read(inspected: &str) -> Result<Vec<Created>, String> {
    serde_json::from_str(inspected)
        .map_err(|error| format!("what the engine says is not understood: {error}"))
}

impl Created {
    /// The name of its service.
    pub(super) fn service(&self) -> &str {
        self.config.labels.get(SERVICE).map_or("?", String::as_str)
    }

    /// The networks that it is in.
    pub(super) fn networks(&self) -> Vec<String> {
        self.network_settings.networks.keys().cloned().collect()
    }

    /// Where its server is reached. It has to be so whenever it starts.
    pub(super) fn address(&self) -> Result<SocketAddr, String> {
        let bindings = self.host_config.port_bindings.as_ref().and_then(|bindings| bindings.get(PORT));
        let binding = bindings.and_then(Option::as_ref).and_then(|bindings| bindings.first());
        let port = binding.and_then(|binding| binding.host_port.parse().ok()).filter(|port| *port != 0);
        let (Some(binding), Some(port)) = (binding, port) else {
            return Err(format!(
                "{} publishes its port 6379 at no fixed one, as 127.0.0.1:7001:6379 would",
                self.service()
            ));
        };
        let ip = binding.host_ip.parse().ok().filter(|ip: &IpAddr| !ip.is_unspecified());
        Ok((ip.unwrap_or(Ipv4Addr::LOCALHOST.into()), port).into())
    }

    /// Whether whatever it may write is the project's own, so that nothing else is lost with it.
    pub(super) fn is_isolated(&self, project: &str) -> Result<(), String> {
        let foreign = self.mounts.iter().find(|mount| mount.writable && !mount.is_of(project));
        foreign.map_or(Ok(()), |mount| {
            Err(format!(
                "{} would write to {}, which is not the run's own: faults lose data, so give it a volume without a \
                 name of its own, or mount it read-only",
                self.service(),
                if mount.name.is_empty() { &mount.source } else { &mount.name }
            ))
        })
    }
}

impl Mount {
    /// A volume of this project, or one without a name, which a container has for itself.
    fn is_of(&self, project: &str) -> bool {
        let is_unnamed = self.name.len() == 64 && self.name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_unnamed || self.name.strip_prefix(project).is_some_and(|rest| rest.starts_with('_'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn container(binding: Value, mounts: Value) -> Created {
        let inspected = json!([{
            "Id": "1",
            "Config": { "Labels": { SERVICE: "master1" } },
            "HostConfig": { "PortBindings": { PORT: binding } },
            "Mounts": mounts,
            "NetworkSettings": { "Networks": { "p_default": { "IPAddress": "" } } },
        }]);
        read(&inspected.to_string()).unwrap().remove(0)
    }

    fn at(ip: &str, port: &str) -> Result<SocketAddr, String> {
        container(json!([{ "HostIp": ip, "HostPort": port }]), json!([])).address()
    }

    #[test]
    fn a_server_is_where_its_port_is_published() {
        assert_eq!(at("127.0.0.1", "7001"), Ok(([127, 0, 0, 1], 7001).into()));
        assert_eq!(at("10.0.0.5", "7001"), Ok(([10, 0, 0, 5], 7001).into()));
        for everywhere in ["", "0.0.0.0", "::"] {
            assert_eq!(at(everywhere, "7001"), Ok(([127, 0, 0, 1], 7001).into()));
        }
    }

    #[test]
    fn a_port_that_may_be_another_one_after_a_restart_is_refused() {
        let none = container(Value::Null, json!([])).address();
        for refused in [at("127.0.0.1", ""), at("127.0.0.1", "0"), none] {
            assert!(refused.unwrap_err().contains("master1 publishes its port 6379 at no fixed one"));
        }
    }

    #[test]
    fn what_is_not_the_projects_own_is_not_written_to() {
        let unnamed = "0123456789abcdef".repeat(4);
        let volume = |name: &str| json!({ "Type": "volume", "Name": name, "Source": "/v", "RW": true });
        let folder = |writable: bool| json!({ "Type": "bind", "Source": "/srv/redis", "RW": writable });
        let isolated = |mount: Value| container(Value::Null, json!([mount])).is_isolated("p");
        for fine in [volume("p_data1"), volume(&unnamed), folder(false)] {
            assert_eq!(isolated(fine), Ok(()));
        }
        for (foreign, name) in
            [(volume("data1"), "data1"), (volume("prod_data1"), "prod_data1"), (folder(true), "/srv/redis")]
        {
            assert!(isolated(foreign).unwrap_err().contains(&format!("master1 would write to {name},")));
        }
    }

    #[test]
    fn networks_have_names() {
        assert_eq!(container(Value::Null, json!([])).networks(), ["p_default"]);
    }
}

//! Why there are no containers.

/// Why there are no containers.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// There is no `docker`, or what it talks to is not there.
    #[error("no Docker engine answers: {0}")]
    NoEngine(String),
    /// There is an engine, but nothing that reads the file.
    #[error("there is no compose tool: neither `docker compose` nor `docker-compose` runs")]
    NoTool,
    /// The file's services do not start, or are none that faults may strike.
    #[error("{file}: {why}")]
    Services {
        /// The compose file.
        file: String,
        /// What is wrong, with what the tool said.
        why: String,
    },
}

//! Opens the stream to a master: TCP, TLS or a Unix socket, with the socket options that a lock
//! needs.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::Endpoint;
use crate::invalid::Invalid;

/// How long a peer may leave what was sent unacknowledged, or be quiet on an idle connection,
/// before the kernel gives the connection up. It only bounds how long a vanished host keeps a
/// socket; callers stop waiting much earlier.
const DEAD_PEER: Duration = Duration::from_secs(10);

/// A stream to a master.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens streams. The TLS configuration is made once: making one reads and checks every root
/// certificate.
#[derive(Clone)]
pub(crate) struct Dialler {
    #[cfg(feature = "tls")]
    tls: tokio_rustls::TlsConnector,
}

impl Dialler {
    #[cfg(not(feature = "tls"))]
    pub(crate) fn new(_roots: &[Vec<u8>]) -> Result<Self, Invalid> {
        Ok(Self {})
    }

    /// Trusts the roots that Mozilla trusts, and those in `roots` (PEM).
    #[cfg(feature = "tls")]
    pub(crate) fn new(roots: &[Vec<u8>]) -> Result<Self, Invalid> {
        use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
        use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

        let invalid = |why: &str| Invalid::certificate(why);
        let mut store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for pem in roots {
            let before = store.len();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| invalid(&error.to_string()))?;
                store.add(certificate).map_err(|error| invalid(&error.to_string()))?;
            }
            if store.len() == before {
                return Err(invalid("there is no certificate in the PEM text"));
            }
        }
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(&error.to_string()))?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Self { tls: std::sync::Arc::new(config).into() })
    }

    pub(crate) async fn dial(&self, endpoint: &Endpoint) -> io::Result<Box<dyn Stream>> {
        match endpoint {
            Endpoint::Tcp { host, port, tls: false } => Ok(Box::new(tcp(host, *port).await?)),
            Endpoint::Tcp { host, port, tls: true } => self.tls(host, *port).await,
            #[cfg(unix)]
            Endpoint::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
            #[cfg(not(unix))]
            Endpoint::Unix(_) => Err(io::Error::other("this system has no Unix sockets")),
        }
    }

    #[cfg(feature = "tls")]
    async fn tls(&self, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
        let name = tokio_rustls::rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Box::new(self.tls.connect(name, tcp(host, port).await?).await?))
    }

    #[cfg(not(feature = "tls"))]
    async fn tls(&self, _host: &str, _port: u16) -> io::Result<Box<dyn Stream>> {
        Err(io::Error::other("this build has no TLS"))
    }
}

/// Whether a stream could not be opened because of the server's certificate.
#[cfg(feature = "tls")]
pub(super) fn is_about_certificate(error: &io::Error) -> bool {
    use tokio_rustls::rustls::Error;
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(cause, Some(Error::InvalidCertificate(_)))
}

#[cfg(not(feature = "tls"))]
pub(super) fn is_about_certificate(_: &io::Error) -> bool {
    false
}

/// A TCP stream that sends at once (a lock's messages are small and somebody waits for each) and
/// notices a dead peer.
async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let probes = TcpKeepalive::new().with_time(DEAD_PEER / 2).with_interval(DEAD_PEER / 5);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(DEAD_PEER))?;
    Ok(stream)
}

//! TLS, with a certificate authority of the test's own.

use quorate::{Error, Init, Outcome, Redlock, Refusal, SetError};
use quorate_testkit::{RedisServer, skipped};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::{PATIENT, SOON, TTL};

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A server with a certificate for these names; `None` where servers have no TLS.
    fn server(&self, names: &[&str]) -> Option<(RedisServer, tempfile::TempDir)> {
        let folder = tempfile::TempDir::new().unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let write = |name: &str, text: &str| -> String {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (cert, key) = (write("cert.pem", &certificate.pem()), write("key.pem", &key.serialize_pem()));
        let ca = write("ca.pem", &self.pem);
        #[rustfmt::skip]
        let options = ["--port", "0", "--tls-port", "{port}", "--tls-auth-clients", "no",
            "--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        match RedisServer::try_start(&options) {
            Ok(server) => Some((server, folder)),
            Err(error) if error.to_string().contains("Failed finding TLS support") => {
                skipped("TLS", "redis-server was built without it");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn first_vote(url: String, root: Option<&str>) -> Outcome {
    let builder = crate::begin().master(url).ttl(TTL).timeout(PATIENT);
    let builder = root.into_iter().fold(builder, |builder, root| builder.tls_root(root));
    let redlock = builder.build().unwrap();
    let lock = redlock.lock("l");
    match lock.try_acquire().await {
        Ok(guard) => guard.votes()[0].outcome.clone(),
        Err(error) => error.votes()[0].outcome.clone(),
    }
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_root_and_for_its_name_only() {
    let authority = Authority::new();
    let Some((server, _folder)) = authority.server(&["localhost", "127.0.0.1"]) else { return };
    let port = server.port();
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("rediss://{host}:{port}");
        assert_eq!(first_vote(url.clone(), Some(&authority.pem)).await, Outcome::Granted);
        let why = first_vote(url, None).await.to_string();
        assert!(why.contains("UnknownIssuer"), "{why}");
    }
    let Some((other, _folder)) = authority.server(&["example.org"]) else { return };
    let why =
        first_vote(format!("valkeys://localhost:{}", other.port()), Some(&authority.pem)).await.to_string();
    assert!(why.contains("not valid for name"), "{why}");
}

#[tokio::test]
async fn an_unknown_authority_ends_each_wait_at_once() {
    let authority = Authority::new();
    let Some((server, _folder)) = authority.server(&["localhost"]) else { return };
    let url = format!("rediss://localhost:{}", server.port());
    let client = Redlock::builder().master(url).timeout(PATIENT).wait(PATIENT * 60).build().unwrap();
    let ended = tokio::time::timeout(SOON, client.lock("l").acquire()).await.expect("no wait");
    assert!(matches!(ended, Err(Error::Refused { reason: Refusal::Certificate, .. })), "{ended:?}");
    let ended = tokio::time::timeout(SOON, client.init(Init::new())).await.expect("no wait");
    let Err(error @ SetError::NotBegun { .. }) = ended else { panic!("{ended:?}") };
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[test]
fn a_root_that_is_none_and_an_unchecked_certificate_are_refused() {
    let build =
        |url: &str, root: &str| crate::begin().master(url).tls_root(root).build().unwrap_err().to_string();
    assert!(build("rediss://h", "hello").contains("no certificate"));
    assert!(build("rediss://h#insecure", &Authority::new().pem).contains("always checked"));
}

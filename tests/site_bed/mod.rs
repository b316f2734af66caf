//! Site daemons on loopback: real processes, real certificates. Every site of a bed has an address of its own in
//! 127.0.0.0/8, so that all can listen on one port, as those of a mesh do.
#![allow(dead_code, reason = "each test uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test's helpers are tests too"
)]

pub mod client;

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use sha2::{Digest as _, Sha256};

/// The port of all sites.
pub const PORT: u16 = 19_091;
/// The port of their metrics.
pub const METRICS: u16 = 19_092;

/// An address that no other test uses.
pub fn address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(
        127,
        1 + high % 250,
        low,
        NEXT.fetch_add(1, Ordering::Relaxed),
    )
}

/// Waits until something is so, or fails the test.
pub fn until<T>(what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = is_so() {
            return found;
        }
        assert!(Instant::now() < end, "it never came to it that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct Certified {
    pub pem: String,
    pub key: String,
    pub der: Vec<u8>,
    pub key_der: Vec<u8>,
}

impl Certified {
    pub fn pin(&self) -> String {
        Sha256::digest(&self.der)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

/// What a certificate is to say.
pub struct Ask<'a> {
    pub uris: &'a [&'a str],
    pub until: i32,
    pub usages: &'a [ExtendedKeyUsagePurpose],
}

/// An authority of a mesh.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
    pub der: Vec<u8>,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::OrganizationName, "ai-grid");
        // Another subject than a leaf's, else OpenSSL takes a leaf as signed by itself.
        params
            .distinguished_name
            .push(DnType::CommonName, "prod authority");
        let certificate = params.self_signed(&key).unwrap();
        Self {
            pem: certificate.pem(),
            der: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        }
    }

    /// What a site of the mesh has.
    pub fn site(&self, name: &str) -> Certified {
        let uri = format!("spiffe://grid.internal/site/{name}");
        self.issue(&Ask {
            uris: &[&uri],
            until: 2999,
            usages: &[
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
        })
    }

    pub fn issue(&self, ask: &Ask<'_>) -> Certified {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["x.grid.internal".to_owned()]).unwrap();
        for uri in ask.uris {
            params
                .subject_alt_names
                .push(SanType::URI((*uri).try_into().unwrap()));
        }
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(ask.until, 1, 1);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = ask.usages.to_vec();
        params.is_ca = IsCa::ExplicitNoCa;
        params
            .distinguished_name
            .push(DnType::OrganizationName, "ai-grid");
        params.distinguished_name.push(DnType::CommonName, "a site");
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Certified {
            pem: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
            key_der: key.serialize_der(),
        }
    }
}

/// A provider that shows metrics.
pub struct Provider {
    pub url: String,
    body: Arc<Mutex<String>>,
}

impl Provider {
    pub fn new(body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let body = Arc::new(Mutex::new(body.to_owned()));
        let shown = Arc::clone(&body);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let body = shown.lock().unwrap().clone();
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { url, body }
    }

    pub fn shows(&self, body: &str) {
        *self.body.lock().unwrap() = body.to_owned();
    }
}

/// A site: its files, and its daemon when it runs.
pub struct Site {
    pub name: String,
    pub address: Ipv4Addr,
    pub mode: &'static str,
    pub trust: &'static str,
    pub settings: Vec<(&'static str, String)>,
    pub scrapes: Vec<(&'static str, String)>,
    pub peers: Vec<(String, Ipv4Addr, Vec<String>)>,
    pub identity: Certified,
    pub authorities: String,
    /// Where it listens, if not at its own address and the port of all.
    pub listens: Option<(&'static str, u16)>,
    /// What else stands in site.toml.
    pub more: &'static str,
    /// What the daemon finds in its environment.
    pub variables: Vec<(&'static str, String)>,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Site {
    /// A site under poll and pin, that looks at its files often.
    pub fn new(name: &str, authority: &Authority) -> Self {
        Self {
            name: name.to_owned(),
            address: address(),
            mode: "poll",
            trust: "pin",
            settings: vec![
                ("special_addresses", "true".to_owned()),
                ("scrape_interval_ms", "200".to_owned()),
                ("poll_interval_ms", "300".to_owned()),
                ("reread_ms", "100".to_owned()),
            ],
            scrapes: Vec::new(),
            peers: Vec::new(),
            identity: authority.site(name),
            authorities: authority.pem.clone(),
            listens: None,
            more: "",
            variables: Vec::new(),
            folder: tempfile::tempdir().unwrap(),
            child: None,
        }
    }

    /// Knows another one.
    pub fn knows(&mut self, other: &Self) {
        let pins = vec![other.identity.pin()];
        self.peers.push((other.name.clone(), other.address, pins));
    }

    /// Knows somebody who is nowhere.
    pub fn knows_caller(&mut self, name: &str, caller: &Certified) {
        self.peers.push((
            name.to_owned(),
            Ipv4Addr::new(127, 255, 255, 254),
            vec![caller.pin()],
        ));
    }

    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.address), PORT)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn config(&self) -> PathBuf {
        self.folder().join("site.toml")
    }

    pub fn state(&self, file: &str) -> PathBuf {
        self.folder().join("state").join(file)
    }

    pub fn json(&self, file: &str) -> Option<serde_json::Value> {
        serde_json::from_slice(&std::fs::read(self.state(file)).ok()?).ok()
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.folder().join(file);
        let next = self.folder().join(format!("{file}.next"));
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, path).unwrap();
    }

    /// Writes its files as a push would.
    pub fn write(&self) {
        let own = self.address.to_string();
        let (listen, port) = self.listens.unwrap_or((&own, PORT));
        let mut toml = format!(
            "format = 1\nnetwork = \"prod\"\nsite = \"{}\"\nmode = \"{}\"\ntrust = \"{}\"\nport = {port}\nstate = \"{}\"\nmetrics = \"{}:{METRICS}\"\n",
            self.name,
            self.mode,
            self.trust,
            self.folder().join("state").display(),
            self.address,
        );
        toml += &format!("[settings]\nlisten = \"{listen}\"\n");
        for (key, value) in &self.settings {
            toml += &format!("{key} = {value}\n");
        }
        for (provider, url) in &self.scrapes {
            toml += &format!("[[scrape]]\nprovider = \"{provider}\"\nurl = \"{url}\"\n");
        }
        toml += self.more;
        let mut peers = "format = 1\n".to_owned();
        for (name, host, pins) in &self.peers {
            peers += &format!("[[peers]]\nname = \"{name}\"\nhost = \"{host}\"\npins = {pins:?}\n");
        }
        self.put("identity.key", &self.identity.key);
        self.put("identity.pem", &self.identity.pem);
        self.put("authorities.pem", &self.authorities);
        self.put("peers.toml", &peers);
        self.put("site.toml", &toml);
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grid"));
        command
            .args(["-v", "site", "run", "--config"])
            .arg(self.config());
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder().join("log"))
            .unwrap();
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// Starts the daemon, without waiting for it.
    pub fn spawn(&mut self) {
        self.write();
        self.child = Some(self.command().spawn().unwrap());
    }

    /// Starts the daemon, and waits until it says that it runs.
    pub fn start(&mut self) {
        self.spawn();
        let pid = self.pid();
        until("the daemon runs", || {
            if let Some(child) = &mut self.child
                && let Some(ended) = child.try_wait().unwrap()
            {
                panic!("the daemon of {} ended: {ended}\n{}", self.name, self.log());
            }
            let status = self.json("status.json")?;
            (status["pid"] == pid).then_some(())
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn runs(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    /// Waits until the daemon ended.
    pub fn ended(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("the daemon of {} does not end\n{}", self.name, self.log());
    }

    /// kill -9.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        let pid = i32::try_from(self.pid()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// The daemon's own metrics.
    pub fn metrics(&self) -> String {
        let mut stream = std::net::TcpStream::connect((self.address, METRICS)).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// The value of one counter.
    pub fn counter(&self, line: &str) -> u64 {
        let metrics = self.metrics();
        let found = metrics
            .lines()
            .find_map(|shown| shown.strip_prefix(line)?.strip_prefix(' '));
        found.map_or(0, |value| value.parse().unwrap())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("== the log of {}\n{}", self.name, self.log());
        }
        self.kill();
    }
}

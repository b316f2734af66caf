//! A caller of the signals listener: a blocking TLS client of rustls that shows a certificate, and trusts whoever answers
//! but keeps its certificate.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::Certified;

#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A connection, with its handshake done as far as the client sees it.
pub struct Caller(StreamOwned<ClientConnection, TcpStream>);

impl Caller {
    /// Connects and shows `certified`; nothing, if there is none.
    pub fn connect(to: SocketAddr, certified: Option<&Certified>) -> io::Result<Self> {
        Self::with(to, certified, &rustls::version::TLS13)
    }

    pub fn with(
        to: SocketAddr,
        certified: Option<&Certified>,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> io::Result<Self> {
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anybody));
        let config = match certified {
            Some(certified) => {
                let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certified.key_der.clone()));
                builder
                    .with_client_auth_cert(vec![certified.der.clone().into()], key)
                    .unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let connection = ClientConnection::new(
            Arc::new(config),
            ServerName::try_from("x.grid.internal").unwrap(),
        )
        .unwrap();
        let socket = TcpStream::connect_timeout(&to, Duration::from_secs(20))?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        socket.set_write_timeout(Some(Duration::from_secs(30)))?;
        let mut stream = StreamOwned::new(connection, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut stream.sock)?;
        }
        Ok(Self(stream))
    }

    /// The certificate that the server shows.
    pub fn shown(&self) -> Vec<u8> {
        self.0.conn.peer_certificates().unwrap()[0].to_vec()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)?;
        self.0.flush()
    }

    /// Asks, and reads the answer; the connection stays.
    pub fn ask(&mut self, request: &str) -> io::Result<Answer> {
        match self.send(request.as_bytes()) {
            // It answered before it had read everything, and closed: the answer may be here all the same.
            Err(error) if is_cut(&error) => {
                let Self(stream) = self;
                while stream.conn.read_tls(&mut stream.sock).is_ok_and(|n| n > 0) {
                    if stream.conn.process_new_packets().is_err() {
                        break;
                    }
                }
                read_answer(&mut stream.conn.reader()).map_err(|_| error)
            }
            sent => {
                sent?;
                self.answer()
            }
        }
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        read_answer(&mut self.0)
    }

    /// Reads an answer that has a head and no body, as that to HEAD.
    pub fn head(&mut self) -> io::Result<Answer> {
        read_head(&mut self.0)
    }

    /// Whether the server closes the connection, within the time that a read may take.
    pub fn is_closed(&mut self) -> bool {
        use io::ErrorKind::{TimedOut, WouldBlock};
        match self.0.read(&mut [0; 1]) {
            Ok(n) => n == 0,
            Err(error) => !matches!(error.kind(), TimedOut | WouldBlock),
        }
    }
}

/// Whether the other side closed the connection while something was written to it.
pub fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

fn read_head(from: &mut dyn Read) -> io::Result<Answer> {
    let mut bytes = Vec::new();
    let mut byte = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if from.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Ok(Answer {
        status,
        headers,
        body: String::new(),
    })
}

fn read_answer(from: &mut dyn Read) -> io::Result<Answer> {
    let mut answer = read_head(from)?;
    let length = answer.header("content-length");
    let length = length.map_or(0, |value| value.parse().unwrap());
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    answer.body = String::from_utf8(body).unwrap();
    Ok(answer)
}

/// One GET on a connection of its own.
pub fn get(to: SocketAddr, certified: &Certified, path: &str) -> io::Result<Answer> {
    Caller::connect(to, Some(certified))?.get(path)
}

/// A report of a gateway, one header a line.
pub fn report(epoch: &str, sequence: u64, rejected: u64, clean: bool) -> String {
    format!(
        "x-grid-ingest-version: 1\r\nx-grid-ingest-epoch: {epoch}\r\nx-grid-ingest-sequence: {sequence}\r\n\
         x-grid-ingest-rejected: {rejected}\r\nx-grid-ingest-clean: {clean}\r\nx-grid-ingest-replica: gw-0\r\n"
    )
}

/// A request with these headers and no body.
pub fn post(headers: &str) -> String {
    format!("POST /v1/site/signals/ingest HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

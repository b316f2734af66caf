//! The least that a push could be: connect, check the host key, sign, one exec, one tar. The same ssh2, the same key
//! exchange, and as careful about acknowledgements as grid is.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use ssh2::{BlockDirections, CheckResult, KnownHostFileKind, MethodType, Session};

/// The first argument that makes a benchmark this program.
pub const BARE: &str = "--bare";

/// What is run on the machine: unpack beside, switch, activate.
pub fn line(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "set -e; rm -rf {folder}/new; mkdir -p {folder}/new; tar -xf - -C {folder}/new; rm -rf {folder}/old; \
         if [ -d {folder}/current ]; then mv {folder}/current {folder}/old; fi; mv {folder}/new {folder}/current; true"
    )
}

/// If this process was started as the bare program (`--bare PORT PARALLEL FOLDER ADDRESS…`, in the folder of the mesh):
/// does all of it, and returns true.
pub fn asked() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_none_or(|first| first != BARE) {
        return false;
    }
    let port: u16 = arguments[2].parse().unwrap();
    let parallel: usize = arguments[3].parse().unwrap();
    let folder = PathBuf::from(&arguments[4]);
    let addresses = Mutex::new(arguments[5..].iter());
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all(".", "files").unwrap();
    let tar = tar.into_inner().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..parallel {
            scope.spawn(|| {
                loop {
                    let next = addresses.lock().unwrap().next();
                    let Some(address) = next else { return };
                    let line = line(&folder.join(format!("bare-{address}")));
                    push(address, port, &line, &tar);
                }
            });
        }
    });
    true
}

fn push(address: &str, port: u16, line: &str, tar: &[u8]) {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let socket = TcpStream::connect((address, port)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut session = Session::new().unwrap();
    session.set_blocking(false);
    session.set_tcp_stream(socket.try_clone().unwrap());
    session
        .method_pref(MethodType::HostKey, "ssh-ed25519")
        .unwrap();
    let waits = session.clone();
    let wait = || wait(&waits, &socket);
    drive(&wait, || session.handshake());
    let mut known = session.known_hosts().unwrap();
    known
        .read_file(&home.join(".ssh/known_hosts"), KnownHostFileKind::OpenSSH)
        .unwrap();
    let (key, _) = session.host_key().unwrap();
    assert!(matches!(
        known.check_port(address, port, key),
        CheckResult::Match
    ));
    let private = home.join(".ssh/id_ed25519");
    drive(&wait, || {
        session.userauth_pubkey_file("root", None, &private, None)
    });
    let mut channel = drive(&wait, || session.channel_session());
    drive(&wait, || channel.exec(line));
    let mut rest = tar;
    while !rest.is_empty() {
        let n = drive_io(&wait, || channel.write(rest));
        rest = &rest[n..];
    }
    drive(&wait, || channel.send_eof());
    let mut buffer = [0; 1024];
    while drive_io(&wait, || channel.read(&mut buffer)) > 0 {}
    drive(&wait, || channel.close());
    drive(&wait, || channel.wait_close());
    assert_eq!(channel.exit_status().unwrap(), 0);
}

fn drive<T>(wait: &dyn Fn(), mut step: impl FnMut() -> Result<T, ssh2::Error>) -> T {
    loop {
        match step() {
            Ok(done) => return done,
            Err(error) if error.code() == ssh2::ErrorCode::Session(-37) => wait(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn drive_io(wait: &dyn Fn(), mut step: impl FnMut() -> io::Result<usize>) -> usize {
    loop {
        match step() {
            Ok(n) => return n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn wait(session: &Session, socket: &TcpStream) {
    let flags = match session.block_directions() {
        BlockDirections::Outbound => PollFlags::OUT,
        BlockDirections::Both => PollFlags::IN | PollFlags::OUT,
        BlockDirections::Inbound | BlockDirections::None => PollFlags::IN,
    };
    let _ = rustix::net::sockopt::set_tcp_quickack(socket, true);
    poll(&mut [PollFd::new(socket, flags)], None).unwrap();
}

//! A command -> its disk operations in order, recorded with strace and expressed as operations of [`super::disk`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::disk::{Change, Disk, FileId, NameOp, Node, Op};

/// All system calls that change files or make them durable, and those that determine the target of a write.
const CALLS: &str = "open,openat,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,rename,renameat,renameat2,\
    link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,sync_file_range,close,lseek";

/// A recorded command.
pub(crate) struct Recording {
    /// The disk before the command, all of it durable.
    pub(crate) before: Disk,
    /// Its operations.
    pub(crate) ops: Vec<Op>,
}

/// Runs a command that must succeed and records what it does below `root`.
pub(crate) fn record(root: &Path, command: &Command) -> Recording {
    let before = Disk::of(root);
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-y", "-xx", "-s", "99999999", "-e", "signal=none"]);
    // Copying within the kernel is refused, because strace does not show the copied bytes.
    strace.args(["-e", &format!("trace={CALLS}"), "-e", "inject=copy_file_range,sendfile:error=ENOSYS"]);
    strace.arg("-o").arg(log.path()).arg(command.get_program()).args(command.get_args());
    let output = strace.output().unwrap_or_else(|error| {
        panic!("strace cannot be started: {error}; install it, as ./check does on Debian")
    });
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let mut parser = Parser::new(root, &before);
    let mut lines = BufReader::with_capacity(1 << 20, log.as_file());
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).unwrap() > 0 {
        parser.line(std::str::from_utf8(line.trim_ascii_end()).unwrap());
        line.clear();
    }
    let recording = Recording { ops: parser.ops, before };
    recording.check_against(root);
    recording
}

impl Recording {
    /// Asserts that the recording is complete: replaying it gives the present content.
    fn check_against(&self, root: &Path) {
        let mut disk = self.before.clone();
        self.ops.iter().enumerate().for_each(|(at, op)| disk.apply(at, op));
        let (recorded, real) = (disk.as_written(), Disk::of(root).as_written());
        let names = |tree: &super::disk::Tree| tree.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&recorded), names(&real), "the recording misses a name");
        for (path, bytes) in &real {
            assert!(recorded[path] == *bytes, "the recording has other bytes of {}", path.display());
        }
    }
}

/// An open file, with the offset of the next write.
struct Handle {
    at: u64,
    appends: bool,
}

struct Parser<'a> {
    root: &'a Path,
    names: HashMap<PathBuf, Node>,
    lengths: Vec<u64>,
    handles: HashMap<i64, Handle>,
    /// Unfinished calls by thread: their text so far, and the number of operations before them.
    begun: HashMap<String, (String, usize)>,
    ops: Vec<Op>,
}

impl Parser<'_> {
    fn new<'a>(root: &'a Path, before: &Disk) -> Parser<'a> {
        Parser {
            root,
            names: before.names().map(|(path, node)| (path.clone(), node)).collect(),
            lengths: before.lengths(),
            handles: HashMap::new(),
            begun: HashMap::new(),
            ops: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let Some((thread, call)) = line.split_once(' ') else { return };
        let call = call.trim_start();
        if let Some(text) = call.strip_suffix(" <unfinished ...>") {
            if let Some(handle) = text.strip_prefix("close(") {
                // A different thread may get the descriptor's number before this call returns.
                self.handles.remove(&number(handle));
                return;
            }
            self.begun.insert(thread.to_string(), (text.to_string(), self.ops.len()));
        } else if let Some(resumed) = call.strip_prefix("<... ") {
            let (_, rest) = resumed.split_once(" resumed>").unwrap();
            if let Some((text, n_before)) = self.begun.remove(thread) {
                self.call(&format!("{text}{rest}"), n_before);
            }
        } else {
            self.call(call, self.ops.len());
        }
    }

    fn call(&mut self, text: &str, n_before: usize) {
        let Some((name, rest)) = text.split_once('(') else { return };
        let Some((args, returned)) = rest.rsplit_once(" = ") else { return };
        let Some(args) = args.trim_end().strip_suffix(')') else { return };
        let end = returned.find(['<', ' ']).unwrap_or(returned.len());
        let Ok(returned @ 0..) = returned[..end].parse::<i64>() else { return };
        let args: Vec<&str> = args.split(", ").collect();
        match name {
            "open" => self.open(args[0], args[1], returned),
            "openat" => self.open(args[1], args[2], returned),
            "creat" => self.open(args[0], "O_CREAT|O_TRUNC", returned),
            "close" => drop(self.handles.remove(&number(args[0]))),
            "lseek" => self.handle(args[0], |handle| handle.at = returned as u64),
            "write" | "writev" => self.write(&args, returned),
            "pwrite64" | "pwritev" => {
                self.write_at(args[0], bytes_in(&args), number(args[args.len() - 1]) as u64)
            }
            "ftruncate" => self.set_len(self.file_of(args[0]), number(args[1]) as u64),
            "fsync" | "fdatasync" => self.sync(args[0], n_before),
            "rename" => self.rename(args[0], args[1]),
            "renameat" | "renameat2" => self.rename(args[1], args[3]),
            "unlink" | "rmdir" => self.unlink(args[0]),
            "unlinkat" => self.unlink(args[1]),
            "mkdir" => self.make_dir(args[0]),
            "mkdirat" => self.make_dir(args[1]),
            "truncate" | "fallocate" | "link" | "linkat" | "sync_file_range" => {
                assert!(
                    args.iter().all(|arg| self.path_of(arg).is_none()),
                    "{name} is not modelled: {args:?}"
                );
            }
            other => panic!("{other} is not modelled"),
        }
    }

    /// The path below the root in an argument, which is a string or an open file.
    fn path_of(&self, arg: &str) -> Option<PathBuf> {
        let hex = match arg.strip_prefix('"') {
            Some(string) => string.strip_suffix('"')?,
            None => arg.split_once('<')?.1.strip_suffix('>')?,
        };
        let path = PathBuf::from(OsString::from_vec(unhex(hex)));
        let path = path.strip_prefix(self.root).ok()?;
        (!is_passing(path)).then(|| path.to_path_buf())
    }

    fn file_of(&self, arg: &str) -> Option<FileId> {
        match self.names.get(&self.path_of(arg)?)? {
            Node::File(file) => Some(*file),
            Node::Dir => None,
        }
    }

    fn handle(&mut self, arg: &str, change: impl FnOnce(&mut Handle)) {
        if let Some(handle) = self.handles.get_mut(&number(arg)) {
            change(handle);
        }
    }

    fn open(&mut self, path: &str, flags: &str, returned: i64) {
        self.handles.insert(returned, Handle { at: 0, appends: flags.contains("O_APPEND") });
        let Some(path) = self.path_of(path) else { return };
        match self.names.get(&path) {
            Some(Node::File(file)) if flags.contains("O_TRUNC") => self.set_len(Some(*file), 0),
            None if flags.contains("O_CREAT") => {
                let file = FileId(self.lengths.len());
                self.lengths.push(0);
                self.name(NameOp::Put(path, Node::File(file)));
            }
            _ => {}
        }
    }

    fn write(&mut self, args: &[&str], returned: i64) {
        let Some(file) = self.file_of(args[0]) else { return };
        let Some(handle) = self.handles.get_mut(&number(args[0])) else {
            panic!("{} was never opened", args[0])
        };
        let at = if handle.appends { self.lengths[file.0] } else { handle.at };
        handle.at = at + returned as u64;
        let mut bytes = bytes_in(args);
        bytes.truncate(returned as usize);
        self.write_at(args[0], bytes, at);
    }

    fn write_at(&mut self, arg: &str, bytes: Vec<u8>, at: u64) {
        let Some(file) = self.file_of(arg) else { return };
        let length = &mut self.lengths[file.0];
        *length = (*length).max(at + bytes.len() as u64);
        self.ops.push(Op::Data(file, Change::Write(at, bytes)));
    }

    fn set_len(&mut self, file: Option<FileId>, length: u64) {
        let Some(file) = file else { return };
        self.lengths[file.0] = length;
        self.ops.push(Op::Data(file, Change::SetLen(length)));
    }

    fn sync(&mut self, arg: &str, n_before: usize) {
        let Some(path) = self.path_of(arg) else { return };
        match self.names.get(&path) {
            Some(Node::File(file)) => self.ops.push(Op::SyncFile(*file, n_before)),
            Some(Node::Dir) => self.ops.push(Op::SyncDir(path, n_before)),
            None if path.as_os_str().is_empty() => self.ops.push(Op::SyncDir(path, n_before)),
            None => {}
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.path_of(from), self.path_of(to)) {
            self.name(NameOp::Rename(from, to));
        }
    }

    fn unlink(&mut self, path: &str) {
        if let Some(path) = self.path_of(path) {
            self.name(NameOp::Remove(path));
        }
    }

    fn make_dir(&mut self, path: &str) {
        if let Some(path) = self.path_of(path) {
            self.name(NameOp::Put(path, Node::Dir));
        }
    }

    fn name(&mut self, op: NameOp) {
        op.apply(&mut self.names);
        self.ops.push(Op::Name(op));
    }
}

/// Files without meaning after their process ended: SQLite's shared memory, and the lock.
pub(crate) fn is_passing(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with("-shm") || name.ends_with("write.lock")
}

fn number(arg: &str) -> i64 {
    let end = arg.find('<').unwrap_or(arg.len());
    arg[..end].parse().unwrap()
}

/// All string arguments of a call, joined.
fn bytes_in(args: &[&str]) -> Vec<u8> {
    args.iter().flat_map(|arg| arg.split('"').skip(1).step_by(2)).flat_map(unhex).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks_exact(4).map(|escape| digit(escape[2]) << 4 | digit(escape[3])).collect()
}

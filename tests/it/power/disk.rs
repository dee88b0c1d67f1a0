//! Operations on files -> every content that a disk may have when the power goes.
//!
//! A file's bytes are safe when the file was synced after they were written, and a name is safe when its folder was synced
//! after it was given. Everything else may be there, or not, or in part: unsynced writes are kept or lost by sectors, whatever
//! their order, and one file's may be kept where another's are lost. A rename happens or does not. Two things a disk does not do:
//! a name that depends on one that was lost is lost too, and behind a change of length that was lost nothing of the file is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use perennial_core::rng::Rng;
use sha1::{Digest, Sha1};

use super::trace::is_passing;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Number of a file, whatever its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileId(pub(crate) usize);

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    File(FileId),
    Dir,
}

/// A change of a file's content.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Bytes at an offset.
    Write(u64, Vec<u8>),
    /// A new length.
    SetLen(u64),
}

/// A change of a folder's content.
#[derive(Clone, Debug)]
pub(crate) enum NameOp {
    Put(PathBuf, Node),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// One thing that a program asked of the disk. A sync holds what was asked before it began: so many operations.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Data(FileId, Change),
    Name(NameOp),
    SyncFile(FileId, usize),
    SyncDir(PathBuf, usize),
}

/// A folder's content; `None` for a folder in it.
pub(crate) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

impl NameOp {
    fn paths(&self) -> Vec<&PathBuf> {
        match self {
            NameOp::Put(path, _) | NameOp::Remove(path) => vec![path],
            NameOp::Rename(from, to) => vec![from, to],
        }
    }

    pub(crate) fn apply(&self, names: &mut HashMap<PathBuf, Node>) {
        match self {
            NameOp::Put(path, node) => drop(names.insert(path.clone(), *node)),
            NameOp::Remove(path) => drop(names.remove(path)),
            NameOp::Rename(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
        }
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::SetLen(length) => content.resize(*length as usize, 0),
            Change::Write(at, bytes) => write_at(content, *at as usize, bytes),
        }
    }

    /// Some of its sectors; the length grows as if all were there.
    fn apply_torn(&self, content: &mut Vec<u8>, rng: &mut Rng) {
        let Change::Write(at, bytes) = self else { return self.apply(content) };
        let (at, is_cut) = (*at as usize, rng.below(2) == 0);
        if is_cut {
            return write_at(content, at, &bytes[..rng.below(bytes.len() + 1)]);
        }
        let end = at + bytes.len();
        content.resize(content.len().max(end), 0);
        let mut from = at;
        while from < end {
            let to = end.min((from / SECTOR + 1) * SECTOR);
            if rng.below(2) == 0 {
                content[from..to].copy_from_slice(&bytes[from - at..to - at]);
            }
            from = to;
        }
    }
}

fn write_at(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    content.resize(content.len().max(at + bytes.len()), 0);
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// What is lost when the power goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// Nothing: the process was killed and the system lived.
    Nothing,
    /// All that was not synced.
    Unsynced,
    /// Unsynced names; all bytes are kept.
    Names,
    /// Unsynced bytes; all names are kept.
    Bytes,
    /// By lot: each name, each file, each write, each sector.
    Some,
}

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    /// Each with how many operations there were with it: 0 for what was there before all of them.
    pending: Vec<(usize, Change)>,
}

/// What is safe, and what is not yet.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    names: HashMap<PathBuf, Node>,
    pending: Vec<(usize, NameOp)>,
}

impl Disk {
    /// A folder as it is, all of it safe.
    pub(crate) fn of(root: &Path) -> Disk {
        let mut disk = Disk::default();
        disk.add_dir(root, Path::new(""));
        disk
    }

    fn add_dir(&mut self, root: &Path, dir: &Path) {
        for entry in fs::read_dir(root.join(dir)).unwrap() {
            let path = dir.join(entry.unwrap().file_name());
            let full = root.join(&path);
            if full.is_dir() {
                self.names.insert(path.clone(), Node::Dir);
                self.add_dir(root, &path);
            } else if !is_passing(&path) {
                self.names.insert(path, Node::File(FileId(self.files.len())));
                self.files.push(File { synced: fs::read(full).unwrap(), pending: Vec::new() });
            }
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&PathBuf, Node)> {
        self.names.iter().map(|(path, node)| (path, *node))
    }

    pub(crate) fn lengths(&self) -> Vec<u64> {
        self.files.iter().map(|file| file.synced.len() as u64).collect()
    }

    /// A file's end from here on is not safe yet.
    pub(crate) fn unsync(&mut self, path: &Path, from: u64) {
        let Some(Node::File(FileId(file))) = self.names.get(path) else {
            panic!("no file {}", path.display())
        };
        let file = &mut self.files[*file];
        let end = file.synced.split_off(from as usize);
        file.pending.push((0, Change::Write(from, end)));
    }

    /// Does the operation with this number.
    pub(crate) fn apply(&mut self, at: usize, op: &Op) {
        match op {
            Op::Data(file, change) => self.file(*file).pending.push((at + 1, change.clone())),
            Op::Name(name) => {
                if let NameOp::Put(_, Node::File(file)) = name {
                    self.file(*file);
                }
                self.pending.push((at + 1, name.clone()));
            }
            Op::SyncFile(file, n_before) => {
                let file = self.file(*file);
                let n_held = file.pending.partition_point(|(n, _)| n <= n_before);
                for (_, change) in file.pending.drain(..n_held) {
                    change.apply(&mut file.synced);
                }
            }
            Op::SyncDir(dir, n_before) => {
                let (names, pending) = (&mut self.names, &mut self.pending);
                pending.retain(|(n, op)| {
                    let is_held = n <= n_before && op.paths().iter().any(|path| path.parent() == Some(dir));
                    if is_held {
                        op.apply(names);
                    }
                    !is_held
                });
            }
        }
    }

    fn file(&mut self, file: FileId) -> &mut File {
        let n_files = self.files.len().max(file.0 + 1);
        self.files.resize_with(n_files, File::default);
        &mut self.files[file.0]
    }

    /// What programs see while the system lives.
    pub(crate) fn as_written(&self) -> Tree {
        self.after(Loss::Nothing, &mut Rng::new(0))
    }

    /// What is there when the system comes up again.
    pub(crate) fn after(&self, loss: Loss, rng: &mut Rng) -> Tree {
        let names = self.names_after(loss, rng);
        let mut contents: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut tree = Tree::new();
        let sorted: BTreeMap<&PathBuf, &Node> = names.iter().collect();
        for (path, node) in sorted {
            // What is in a folder goes with it.
            if path.parent().is_some_and(|dir| !dir.as_os_str().is_empty() && !tree.contains_key(dir)) {
                continue;
            }
            let content = match node {
                Node::Dir => None,
                Node::File(FileId(file)) => {
                    let content = contents.entry(*file).or_insert_with(|| self.files[*file].after(loss, rng));
                    Some(content.clone())
                }
            };
            tree.insert(path.clone(), content);
        }
        tree
    }

    fn names_after(&self, loss: Loss, rng: &mut Rng) -> HashMap<PathBuf, Node> {
        let mut names = self.names.clone();
        let mut lost: BTreeSet<&PathBuf> = BTreeSet::new();
        for (_, op) in &self.pending {
            let is_lost = match loss {
                Loss::Nothing | Loss::Bytes => false,
                Loss::Unsynced | Loss::Names => true,
                Loss::Some => rng.below(2) == 0,
            };
            if is_lost || op.paths().iter().any(|path| lost.contains(path)) {
                lost.extend(op.paths());
            } else {
                op.apply(&mut names);
            }
        }
        names
    }
}

impl File {
    fn after(&self, loss: Loss, rng: &mut Rng) -> Vec<u8> {
        let mut content = self.synced.clone();
        let all_apply = |content: &mut Vec<u8>, n: usize| {
            self.pending[..n].iter().for_each(|(_, change)| change.apply(content));
        };
        match loss {
            Loss::Nothing | Loss::Names => all_apply(&mut content, self.pending.len()),
            Loss::Unsynced | Loss::Bytes => {}
            Loss::Some => match rng.below(4) {
                0 => {}
                1 => all_apply(&mut content, self.pending.len()),
                2 => {
                    let n_whole = rng.below(self.pending.len() + 1);
                    all_apply(&mut content, n_whole);
                    if let Some((_, torn)) = self.pending.get(n_whole) {
                        torn.apply_torn(&mut content, rng);
                    }
                }
                _ => self.apply_mixed(&mut content, rng),
            },
        }
        content
    }

    /// Each write is kept, torn or lost, whatever became of those before it.
    fn apply_mixed(&self, content: &mut Vec<u8>, rng: &mut Rng) {
        for (_, change) in &self.pending {
            match rng.below(3) {
                0 => change.apply(content),
                1 => change.apply_torn(content, rng),
                _ if matches!(change, Change::SetLen(_)) => break,
                _ => {}
            }
        }
    }
}

/// A digest that two different contents do not share.
pub(crate) fn digest_of(tree: &Tree) -> [u8; 20] {
    let mut hasher = Sha1::new();
    for (path, content) in tree {
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(content.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hasher.update(content.as_deref().unwrap_or_default());
    }
    hasher.finalize().into()
}

/// Puts a content on the real disk.
pub(crate) fn lay_out(tree: &Tree, root: &Path) {
    for (path, content) in tree {
        match content {
            None => fs::create_dir_all(root.join(path)).unwrap(),
            Some(bytes) => fs::write(root.join(path), bytes).unwrap(),
        }
    }
}

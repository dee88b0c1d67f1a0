//! Operations on files -> the contents that a disk may have after a power loss.
//!
//! Bytes are durable once their file was synced after the write, and a name once its folder was synced after the change.
//! All else may survive entirely, partly or not at all: each sector of an unsynced write is kept or lost, in any order,
//! independently for each file. A rename is atomic. The model excludes two things: a name survives only if the names that
//! it depends on survive, and bytes behind a lost change of length are lost.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use perennial_core::rng::Rng;
use sha1::{Digest, Sha1};

use super::trace::is_passing;

/// Bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// Number of a file, independent of its names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileId(pub(crate) usize);

/// The target of a name.
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

/// One operation that a program requested. A sync covers this many operations that were requested before it began.
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

    /// Only some of its sectors; the length grows as if all were written.
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

/// The unsynced data that a power loss destroys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// Nothing: only the process was killed.
    Nothing,
    /// All unsynced data.
    Unsynced,
    /// Unsynced names; all bytes are kept.
    Names,
    /// Unsynced bytes; all names are kept.
    Bytes,
    /// A random choice for each name, file, write and sector.
    Some,
}

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    /// Each with the number of operations up to it; 0 for the initial content.
    pending: Vec<(usize, Change)>,
}

/// The durable content of a disk, and the pending changes.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    names: HashMap<PathBuf, Node>,
    pending: Vec<(usize, NameOp)>,
}

impl Disk {
    /// The present content of a folder, all of it durable.
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

    /// Marks the end of a file, from an offset on, as not yet durable.
    pub(crate) fn unsync(&mut self, path: &Path, from: u64) {
        let Some(Node::File(FileId(file))) = self.names.get(path) else {
            panic!("no file {}", path.display())
        };
        let file = &mut self.files[*file];
        let end = file.synced.split_off(from as usize);
        file.pending.push((0, Change::Write(from, end)));
    }

    /// Applies the operation with this number.
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

    /// The content that programs see while the system runs.
    pub(crate) fn as_written(&self) -> Tree {
        self.after(Loss::Nothing, &mut Rng::new(0))
    }

    /// The content after the restart of the system.
    pub(crate) fn after(&self, loss: Loss, rng: &mut Rng) -> Tree {
        let names = self.names_after(loss, rng);
        let mut contents: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut tree = Tree::new();
        let sorted: BTreeMap<&PathBuf, &Node> = names.iter().collect();
        for (path, node) in sorted {
            // The content of a removed folder is removed with it.
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

    /// Each write is kept, torn or lost, independently of the writes before it.
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

/// A digest that identifies the content.
pub(crate) fn digest_of(tree: &Tree) -> [u8; 20] {
    let mut hasher = Sha1::new();
    for (path, content) in tree {
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(content.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hasher.update(content.as_deref().unwrap_or_default());
    }
    hasher.finalize().into()
}

/// Writes a content to the real disk.
pub(crate) fn lay_out(tree: &Tree, root: &Path) {
    for (path, content) in tree {
        match content {
            None => fs::create_dir_all(root.join(path)).unwrap(),
            Some(bytes) => fs::write(root.join(path), bytes).unwrap(),
        }
    }
}

//! Segments dumped layouts and prints their leaf blocks, one JSON line per page, to fit the weights of blocks.
//!
//!     cargo run --release -p perennial-lab --example segment_layouts -- [--coherence N] [--svg DIR] [--depth N] LAYOUT.jsonl...
//!
//! Layouts are the output of `layout_dump`. `--svg` also draws each page. `--depth` cuts at that depth of the DOM, as a
//! baseline.

use std::path::{Path, PathBuf};
use std::time::Instant;

use perennial_core::page::layout::{Display, Layout, LayoutNode, Rect, Rgba};
use perennial_core::page::segment::{BlockTree, SegmentConfig, leaf_features, segment};
use perennial_lab::draw::draw_svg;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = SegmentConfig::default();
    let (mut svg_dir, mut depth, mut paths) = (None, None, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or("an option lacks its value");
        match arg.as_str() {
            "--coherence" => config.coherence = value()?.parse()?,
            "--svg" => svg_dir = Some(PathBuf::from(value()?)),
            "--depth" => depth = Some(value()?.parse()?),
            _ => paths.push(PathBuf::from(arg)),
        }
    }
    for path in paths {
        let Some(layout) = read_layout(&path) else { continue };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().to_string();
        if let Some(depth) = depth {
            println!("{}", json!({"page": name, "leaves": baseline(&layout, depth)}));
            continue;
        }
        let began = Instant::now();
        let tree = segment(&layout, &config);
        let millis = began.elapsed().as_secs_f64() * 1e3;
        println!("{}", describe(&name, &layout, &tree, &config, millis));
        if let Some(dir) = &svg_dir {
            std::fs::write(dir.join(format!("{name}.svg")), draw_svg(&tree, &layout))?;
        }
    }
    Ok(())
}

fn describe(name: &str, layout: &Layout, tree: &BlockTree, config: &SegmentConfig, millis: f64) -> Value {
    let rows = leaf_features(layout, config);
    let leaves: Vec<Value> = tree
        .leaves()
        .zip(rows)
        .map(|(leaf, row)| {
            json!({
                "ref": leaf.name(), "importance": leaf.importance, "role": leaf.role.name(), "rect": [leaf.rect.x, leaf.rect.y, leaf.rect.w, leaf.rect.h], "doc": leaf.doc,
                "features": row.to_vec(), "text": leaf.read().join(" "), "n_images": leaf.images.len(),
            })
        })
        .collect();
    json!({"page": name, "n_nodes": layout.nodes.len(), "millis": millis, "leaves": leaves})
}

/// The visible text, grouped by the ancestor at a depth of the DOM.
fn baseline(layout: &Layout, depth: usize) -> Vec<Value> {
    let mut tops: Vec<(usize, usize)> = Vec::new();
    let mut texts: Vec<(usize, String)> = Vec::new();
    for (index, node) in layout.nodes.iter().enumerate() {
        let (level, top) = match node.parent.and_then(|parent| tops.get(parent as usize).copied()) {
            Some((level, top)) => (level + 1, if level < depth { index } else { top }),
            None => (0, index),
        };
        tops.push((level, top));
        if node.is_text() && node.is_visible && !node.text.trim().is_empty() {
            let top = if level <= depth {
                node.parent.map_or(index, |parent| tops[parent as usize].1)
            } else {
                top
            };
            match texts.last_mut() {
                Some((last, text)) if *last == top => text.push_str(&node.text),
                _ => texts.push((top, node.text.to_string())),
            }
        }
    }
    texts.into_iter().map(|(_, text)| json!({"text": text, "importance": 0.0})).collect()
}

fn read_layout(path: &Path) -> Option<Layout<'static>> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).ok());
    let head = lines.next()??;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0) as f32;
    Some(Layout {
        base_url: head["base_url"].as_str()?.to_string(),
        engine: head["engine"].as_str()?.to_string(),
        width: number(&head["width"]),
        height: number(&head["height"]),
        is_unstyled: false,
        nodes: lines.map_while(|line| line.as_ref().map(read_node)).collect(),
    })
}

fn read_node(value: &Value) -> LayoutNode<'static> {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0) as f32;
    let text = |value: &Value| value.as_str().unwrap_or("").to_string().into();
    let colour = |value: &Value| {
        let part = |at: usize| value[at].as_u64().unwrap_or(0) as u8;
        Rgba { r: part(0), g: part(1), b: part(2), a: part(3) }
    };
    let rect = &value["rect"];
    let pairs = value["attributes"].as_array().map(Vec::as_slice).unwrap_or_default();
    LayoutNode {
        parent: value["parent"].as_u64().map(|parent| parent as u32),
        tag: text(&value["tag"]),
        attributes: pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        text: text(&value["text"]),
        rect: Rect { x: number(&rect[0]), y: number(&rect[1]), w: number(&rect[2]), h: number(&rect[3]) },
        font_size: number(&value["font_size"]),
        font_weight: value["font_weight"].as_u64().unwrap_or(400) as u16,
        color: colour(&value["color"]),
        background: colour(&value["background"]),
        has_background_image: value["has_background_image"].as_bool().unwrap_or(false),
        display: match value["display"].as_str().unwrap_or("") {
            "None" => Display::None,
            "Block" => Display::Block,
            "FlexOrGrid" => Display::FlexOrGrid,
            "Table" => Display::Table,
            _ => Display::Inline,
        },
        is_fixed: value["is_fixed"].as_bool().unwrap_or(false),
        is_visible: value["is_visible"].as_bool().unwrap_or(true),
        is_collapsed: value["is_collapsed"].as_bool().unwrap_or(false),
    }
}

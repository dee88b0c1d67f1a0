//! Styled nodes -> the same with displays that the engine knows, because it makes no anonymous table boxes (CSS 2.2,
//! 17.2.1).
//!
//! A `display: table` with children that are no rows would be dropped, and rows outside a table would stack their
//! cells. So would a table that is a child of a row without a cell around it, with the whole table around that row. All of them get
//! another display, after style and before the first layout.

use blitz_dom::{BaseDocument, Node, NodeId};
use style::values::specified::box_::{DisplayInside, DisplayOutside};

use crate::engine::Built;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Table,
    RowGroup,
    Row,
    Cell,
    Caption,
    Column,
    Other,
    /// Out of flow, hidden, or only white space: it does not count.
    Ignored,
}

/// Rewrites the display of tables and table parts that stand in the wrong place.
pub(crate) fn mend(document: &mut BaseDocument, built: &Built) {
    let mut changes: Vec<(NodeId, &'static str)> = Vec::new();
    for id in built.ids.iter().flatten() {
        let Some(node) = document.get_node(*id).filter(|node| node.is_element()) else { continue };
        mend_children(document, node, &mut changes);
    }
    for (id, display) in changes {
        document.set_style_property(id, "display", display);
    }
}

fn mend_children(document: &BaseDocument, node: &Node, changes: &mut Vec<(NodeId, &'static str)>) {
    let children: Vec<(NodeId, Part)> = node
        .children
        .iter()
        .filter_map(|&child| document.get_node(child).map(|node| (child, part(node))))
        .filter(|(_, part)| *part != Part::Ignored)
        .collect();
    let has = |wanted: Part| children.iter().any(|(_, part)| *part == wanted);
    let is_all = |wanted: &[Part]| children.iter().all(|(_, part)| wanted.contains(part));
    match part(node) {
        Part::Ignored if !is_shown(node) => {}
        Part::Table if children.is_empty() => {}
        Part::Table if children.iter().any(|(id, _)| has_table_in_row(document, *id)) => {
            changes.push((node.id, "block"));
            lines_of_boxes(document, &children, changes);
        }
        Part::Table if is_all(&[Part::RowGroup, Part::Row, Part::Caption, Part::Column]) => {}
        // Cells without a row in a table are side by side.
        Part::Table if is_all(&[Part::Cell]) => changes.push((node.id, "flex")),
        Part::Table => {
            changes.push((node.id, "block"));
            orphans(&children, changes);
        }
        Part::RowGroup | Part::Row if is_all(&[Part::Row, Part::Cell]) => {}
        Part::Row => children.iter().filter(|(_, part)| *part == Part::Other).for_each(|(id, _)| {
            changes.push((*id, "table-cell"));
        }),
        Part::RowGroup => {}
        _ if has(Part::RowGroup) || has(Part::Row) || has(Part::Cell) => orphans(&children, changes),
        _ => {}
    }
}

/// Whether a row, or a row of a group, has a child that is a table or another part of one where only a cell may be.
fn has_table_in_row(document: &BaseDocument, id: NodeId) -> bool {
    let Some(node) = document.get_node(id) else { return false };
    let parts = || node.children.iter().filter_map(|&child| Some((child, part(document.get_node(child)?))));
    match part(node) {
        Part::Row => parts().any(|(_, part)| matches!(part, Part::Table | Part::RowGroup | Part::Row)),
        Part::RowGroup => parts().any(|(child, part)| part == Part::Row && has_table_in_row(document, child)),
        _ => false,
    }
}

/// Rows become lines of boxes, one below the other, and groups of rows plain boxes around them.
fn lines_of_boxes(
    document: &BaseDocument,
    children: &[(NodeId, Part)],
    changes: &mut Vec<(NodeId, &'static str)>,
) {
    for (id, own) in children {
        match own {
            Part::Row => changes.push((*id, "flex")),
            Part::RowGroup => {
                changes.push((*id, "block"));
                let Some(group) = document.get_node(*id) else { continue };
                let rows = group.children.iter().filter_map(|&row| document.get_node(row));
                changes.extend(rows.filter(|row| part(row) == Part::Row).map(|row| (row.id, "flex")));
            }
            Part::Cell => changes.push((*id, "inline-block")),
            _ => {}
        }
    }
}

/// Outside any table, a group of rows becomes a table and a row becomes a line of boxes.
fn orphans(children: &[(NodeId, Part)], changes: &mut Vec<(NodeId, &'static str)>) {
    for (id, part) in children {
        match part {
            Part::RowGroup => changes.push((*id, "table")),
            Part::Row => changes.push((*id, "flex")),
            Part::Cell => changes.push((*id, "inline-block")),
            _ => {}
        }
    }
}

fn is_shown(node: &Node) -> bool {
    node.primary_styles().is_some_and(|styles| styles.clone_display().inside() != DisplayInside::None)
}

fn part(node: &Node) -> Part {
    if node.is_text_node() {
        return if node.is_whitespace_node() { Part::Ignored } else { Part::Other };
    }
    let Some(styles) = node.primary_styles() else { return Part::Ignored };
    let display = styles.clone_display();
    if display.inside() == DisplayInside::None || styles.clone_position().is_absolutely_positioned() {
        return Part::Ignored;
    }
    match display.inside() {
        DisplayInside::Table => Part::Table,
        DisplayInside::TableRowGroup | DisplayInside::TableHeaderGroup | DisplayInside::TableFooterGroup => {
            Part::RowGroup
        }
        DisplayInside::TableRow => Part::Row,
        DisplayInside::TableCell => Part::Cell,
        DisplayInside::TableColumn | DisplayInside::TableColumnGroup => Part::Column,
        _ if display.outside() == DisplayOutside::TableCaption => Part::Caption,
        _ => Part::Other,
    }
}

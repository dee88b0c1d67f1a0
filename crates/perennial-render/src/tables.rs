//! Changes the display of misplaced table parts, because the engine creates no anonymous table boxes (CSS 2.2,
//! 17.2.1).
//!
//! The engine would drop a `display: table` whose children are not rows, and would stack the cells of rows outside a
//! table. It would also drop a whole table with a nested table directly inside a row. All of these get a different
//! display, after style and before the first layout.

use blitz_dom::{BaseDocument, Node, NodeId};
use style::values::specified::box_::{DisplayInside, DisplayOutside};

use crate::engine::NodeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum TableRole {
    Table,
    RowGroup,
    Row,
    Cell,
    Caption,
    Column,
    Other,
    /// Ignored: out of flow, hidden, or only white space.
    Ignored,
}

/// Changes the display of misplaced tables and table parts.
pub(crate) fn fix_displays(document: &mut BaseDocument, built: &NodeMap) {
    let mut changes: Vec<(NodeId, &'static str)> = Vec::new();
    for id in built.ids.iter().flatten() {
        let Some(node) = document.get_node(*id).filter(|node| node.is_element()) else { continue };
        fix_children(document, node, &mut changes);
    }
    for (id, display) in changes {
        document.set_style_property(id, "display", display);
    }
}

fn fix_children(document: &BaseDocument, node: &Node, changes: &mut Vec<(NodeId, &'static str)>) {
    let children: Vec<(NodeId, TableRole)> = node
        .children
        .iter()
        .filter_map(|&child| document.get_node(child).map(|node| (child, part(node))))
        .filter(|(_, part)| *part != TableRole::Ignored)
        .collect();
    let has = |wanted: TableRole| children.iter().any(|(_, part)| *part == wanted);
    let is_all = |wanted: &[TableRole]| children.iter().all(|(_, part)| wanted.contains(part));
    match part(node) {
        TableRole::Ignored if !is_shown(node) => {}
        TableRole::Table if children.is_empty() => {}
        TableRole::Table if children.iter().any(|(id, _)| has_table_in_row(document, *id)) => {
            changes.push((node.id, "block"));
            lines_of_boxes(document, &children, changes);
        }
        TableRole::Table
            if is_all(&[TableRole::RowGroup, TableRole::Row, TableRole::Caption, TableRole::Column]) => {}
        // Cells without a row in a table are side by side.
        TableRole::Table if is_all(&[TableRole::Cell]) => changes.push((node.id, "flex")),
        TableRole::Table => {
            changes.push((node.id, "block"));
            orphans(&children, changes);
        }
        TableRole::RowGroup | TableRole::Row if is_all(&[TableRole::Row, TableRole::Cell]) => {}
        TableRole::Row => {
            children.iter().filter(|(_, part)| *part == TableRole::Other).for_each(|(id, _)| {
                changes.push((*id, "table-cell"));
            })
        }
        TableRole::RowGroup => {}
        _ if has(TableRole::RowGroup) || has(TableRole::Row) || has(TableRole::Cell) => {
            orphans(&children, changes)
        }
        _ => {}
    }
}

/// Whether a row, or a row of a group, directly contains a table or table part other than a cell.
fn has_table_in_row(document: &BaseDocument, id: NodeId) -> bool {
    let Some(node) = document.get_node(id) else { return false };
    let parts = || node.children.iter().filter_map(|&child| Some((child, part(document.get_node(child)?))));
    match part(node) {
        TableRole::Row => {
            parts().any(|(_, part)| matches!(part, TableRole::Table | TableRole::RowGroup | TableRole::Row))
        }
        TableRole::RowGroup => {
            parts().any(|(child, part)| part == TableRole::Row && has_table_in_row(document, child))
        }
        _ => false,
    }
}

/// Rows become flex containers, one below the other, and groups of rows become plain blocks.
fn lines_of_boxes(
    document: &BaseDocument,
    children: &[(NodeId, TableRole)],
    changes: &mut Vec<(NodeId, &'static str)>,
) {
    for (id, own) in children {
        match own {
            TableRole::Row => changes.push((*id, "flex")),
            TableRole::RowGroup => {
                changes.push((*id, "block"));
                let Some(group) = document.get_node(*id) else { continue };
                let rows = group.children.iter().filter_map(|&row| document.get_node(row));
                changes.extend(rows.filter(|row| part(row) == TableRole::Row).map(|row| (row.id, "flex")));
            }
            TableRole::Cell => changes.push((*id, "inline-block")),
            _ => {}
        }
    }
}

/// Outside any table, a group of rows becomes a table and a row becomes a flex container.
fn orphans(children: &[(NodeId, TableRole)], changes: &mut Vec<(NodeId, &'static str)>) {
    for (id, part) in children {
        match part {
            TableRole::RowGroup => changes.push((*id, "table")),
            TableRole::Row => changes.push((*id, "flex")),
            TableRole::Cell => changes.push((*id, "inline-block")),
            _ => {}
        }
    }
}

fn is_shown(node: &Node) -> bool {
    node.primary_styles().is_some_and(|styles| styles.clone_display().inside() != DisplayInside::None)
}

fn part(node: &Node) -> TableRole {
    if node.is_text_node() {
        return if node.is_whitespace_node() { TableRole::Ignored } else { TableRole::Other };
    }
    let Some(styles) = node.primary_styles() else { return TableRole::Ignored };
    let display = styles.clone_display();
    if display.inside() == DisplayInside::None || styles.clone_position().is_absolutely_positioned() {
        return TableRole::Ignored;
    }
    match display.inside() {
        DisplayInside::Table => TableRole::Table,
        DisplayInside::TableRowGroup | DisplayInside::TableHeaderGroup | DisplayInside::TableFooterGroup => {
            TableRole::RowGroup
        }
        DisplayInside::TableRow => TableRole::Row,
        DisplayInside::TableCell => TableRole::Cell,
        DisplayInside::TableColumn | DisplayInside::TableColumnGroup => TableRole::Column,
        _ if display.outside() == DisplayOutside::TableCaption => TableRole::Caption,
        _ => TableRole::Other,
    }
}

//! Keeps who imports whom, and finds circles and floors in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::finding::{Finding, Rule};
use super::tree::shown;

/// The imports between files: from, to, and the first line that says so.
#[derive(Default)]
pub(super) struct Arrows(BTreeMap<(PathBuf, PathBuf), usize>);

impl Arrows {
    pub(super) fn add(&mut self, from: &Path, to: &Path, line: usize) {
        if from != to {
            let first = self.0.entry((from.to_owned(), to.to_owned())).or_insert(line);
            *first = line.min(*first);
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &Path, usize)> {
        self.0.iter().map(|((from, to), line)| (from.as_path(), to.as_path(), *line))
    }
}

/// A graph of names.
#[derive(Default)]
pub(super) struct Graph {
    graph: DiGraph<String, ()>,
    nodes: BTreeMap<String, NodeIndex>,
}

impl Graph {
    pub(super) fn node(&mut self, name: &str) -> NodeIndex {
        *self.nodes.entry(name.to_owned()).or_insert_with(|| self.graph.add_node(name.to_owned()))
    }

    pub(super) fn edge(&mut self, from: &str, to: &str) {
        let (from, to) = (self.node(from), self.node(to));
        self.graph.update_edge(from, to, ());
    }

    /// For each set of nodes that all reach each other: its size and its shortest circle.
    pub(super) fn circles(&self) -> Vec<(usize, Vec<String>)> {
        let knots = tarjan_scc(&self.graph).into_iter().filter(|knot| knot.len() > 1);
        let circle = |knot: &[NodeIndex]| knot.iter().filter_map(|node| self.circle(*node)).min_by_key(Vec::len);
        knots.filter_map(|knot| Some((knot.len(), self.names(&circle(&knot)?)))).collect()
    }

    /// The shortest way from a node back to itself, which is its first and its last.
    fn circle(&self, start: NodeIndex) -> Option<Vec<NodeIndex>> {
        let mut ways = VecDeque::from([vec![start]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in self.graph.neighbors(*way.last()?) {
                let longer: Vec<NodeIndex> = way.iter().copied().chain([next]).collect();
                if next == start {
                    return Some(longer);
                }
                if seen.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }

    /// Each node's longest chain down to one that imports nothing, itself first. A circle counts as one node.
    pub(super) fn chains(&self) -> BTreeMap<String, Vec<String>> {
        let mut chains: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
        // What is imported comes before what imports it.
        for knot in tarjan_scc(&self.graph) {
            let below = knot.iter().flat_map(|node| self.graph.neighbors(*node)).filter(|next| !knot.contains(next));
            let below = below.filter_map(|next| chains.get(&next)).max_by_key(|chain| chain.len());
            let below = below.cloned().unwrap_or_default();
            for node in knot {
                chains.insert(node, [vec![node], below.clone()].concat());
            }
        }
        chains.into_iter().map(|(node, chain)| (self.graph[node].clone(), self.names(&chain))).collect()
    }

    /// Whom a node imports.
    pub(super) fn known(&self, name: &str) -> BTreeSet<&str> {
        let node = self.nodes.get(name);
        node.into_iter().flat_map(|node| self.graph.neighbors(*node)).map(|known| self.graph[known].as_str()).collect()
    }

    fn names(&self, nodes: &[NodeIndex]) -> Vec<String> {
        nodes.iter().map(|node| self.graph[*node].clone()).collect()
    }
}

/// Files that import each other.
pub(super) fn circles(arrows: &Arrows) -> Vec<Finding> {
    let mut graph = Graph::default();
    for (from, to, _) in arrows.iter() {
        graph.edge(&shown(from), &shown(to));
    }
    let finding = |(size, circle): (usize, Vec<String>)| {
        let line = |pair: &[String]| arrows.0.get(&(PathBuf::from(&pair[0]), PathBuf::from(&pair[1]))).copied();
        let steps: Vec<String> = circle
            .windows(2)
            .map(|pair| format!("{}:{} → {}", pair[0], line(pair).unwrap_or_default(), pair[1]))
            .collect();
        let text = format!(
            "{size} files import each other, the shortest circle is {}: move what both need into a file below them",
            steps.join(", ")
        );
        Finding::new(Rule::Circle, circle[0].clone(), text)
    };
    graph.circles().into_iter().map(finding).collect()
}

//! Native tool calls.

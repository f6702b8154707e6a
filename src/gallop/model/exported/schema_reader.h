#pragma once

#include <string>
#include <vector>

#include "gallop/model/exported/json_reader.h"
#include "gallop/model/exported/schema.h"

// The parts of parse_program(). All throw DataError that begins with `place`.
namespace gallop::model::exported {

/// The type of a number of the schema; unknown and quantized types are errors.
c10::ScalarType to_dtype(const Json& value, const Place& place);

/// Layouts other than strided are errors, and so are over 64 dimensions.
TensorMeta read_tensor_meta(const Json& json, const Place& place);

/// {"as_int": 64} or {"as_expr": {"expr_str": ..., "hint": ...}}.
Size read_size(const Json& json, const Place& place);

/// `depth` is the number of graphs around a subgraph in the argument; for errors within subgraphs,
/// `file` is the place of the program.
Argument read_argument(const Json& json, const Place& place, const Place& file, int depth);

/// Also validates that values are defined once, and before they are used.
Graph read_graph(const Json& json, const Place& file, int depth);

/// The last frame of a Python stack trace.
SourceLine read_source_line(const std::string& stack_trace);

/// "KEY,FQN,TYPE;KEY,FQN,TYPE".
std::vector<ModuleFrame> read_module_stack(const std::string& stack);

/// The names of a program's inputs by the tree of its arguments (a tuple and a dict). Empty names
/// are not returned; `positional` may be shorter than the tuple.
std::vector<std::string> read_input_names(const std::string& treespec,
                                          const std::vector<std::string>& positional,
                                          const Place& place);
std::vector<std::string> read_output_names(const std::string& treespec, const Place& place);

/// Fails for a value that is used before it is defined, of another kind, defined twice, or that has
/// no entry in the tables of the graph.
void check_values(const Graph& graph, const Place& file);

}  // namespace gallop::model::exported

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gallop/model/exported/argument.h"
#include "gallop/model/exported/tensor_meta.h"

// The programs of torch.export.save() as plain structs, after torch/_export/serde/schema.py.
namespace gallop::model::exported {

/// The line of the user's source that a node was traced from; `file` is empty if it is unknown.
struct SourceLine {
  std::string file;  ///< Without folders.
  int64_t line = 0;
  std::string function{};
  std::string code{};

  /// "net.py:12, in forward"; empty if unknown.
  std::string text() const;
};

/// A module that was being called when a node was traced.
struct ModuleFrame {
  std::string fqn;   ///< "layers.0.conv"; empty for the whole model.
  std::string type;  ///< "torch.nn.modules.conv.Conv2d".
};

struct NamedArgument {
  std::string name;  ///< As in the operator's schema; empty in regions.
  Argument value;
  bool is_keyword = false;
};

/// A dimension of which each process has a part, as DTensor's Shard(dim): of each group of so many
/// elements, such as the heads of a sample, or the queries, the keys and the values.
struct Shard {
  int64_t dim = 0;
  int64_t group = 0;
  bool operator==(const Shard&) const = default;
};

/// A call.
struct Node {
  enum class Kind {
    kOperator,        ///< Of LibTorch's dispatcher or of an extension.
    kScalarFunction,  ///< Of Python's operator, math or torch, on scalars: "mul", "sym_max", ...
    kRegion,  ///< A higher-order operator: cond, wrap_with_set_grad_enabled, wrap_with_autocast.
    kTransition,  ///< To or from a tensor-parallel region; see transitions.h. Not in files.
  };
  std::string name;
  Kind kind = Kind::kOperator;
  std::string function;               ///< "aten::linear", "mul" or "cond".
  std::string overload;               ///< "Tensor"; empty for the default one.
  std::vector<NamedArgument> inputs;  ///< Those with the schema's default may be missing.
  /// TensorName, ScalarName, std::vector<TensorName> or nothing for each result.
  std::vector<Argument> outputs;
  bool returns_single_tensor = false;  ///< For regions.
  SourceLine source;
  std::vector<ModuleFrame> modules;  ///< From the whole model to the innermost.
  std::optional<Shard> shard{};      ///< Of a random result of which each process draws its part.
};

/// "node 'add_1' (aten::add.Tensor at net.py:12, in forward)".
std::string describe(const Node& node);

/// The argument of this name; null if the call leaves it at its default.
const Argument* find_argument(const Node& node, std::string_view name);
Argument* find_argument(Node& node, std::string_view name);

/// Calls in an order in which each uses only inputs and earlier results.
struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  std::unordered_map<std::string, TensorMeta> tensors;  ///< Of every tensor, by name.
  std::unordered_map<std::string, Size> integers;       ///< Of every integer scalar.
  std::unordered_set<std::string> numbers, booleans;    ///< Floating-point and boolean scalars.
  bool returns_single_tensor = false;
};

/// The type and layout of the tensor that an argument names; null if it names none.
const TensorMeta* meta_of(const Graph& graph, const Argument& value);

/// What an input of the program's graph is. The n-th belongs to the graph's n-th input. Several
/// parameters may have the same name: a tied weight, which they all stand for.
struct InputSpec {
  enum class Kind { kParameter, kBuffer, kTensorConstant, kUserInput, kUserConstant };
  Kind kind = Kind::kUserInput;
  /// The name in the model ("conv.weight") or, for inputs of the user, of the argument ("image", or
  /// "batch.image" within a dict, list or tuple).
  std::string name;
  Argument value;             ///< The graph's input: TensorName, ScalarName or the constant.
  bool is_persistent = true;  ///< Of a buffer: whether it is part of the state_dict.
};

struct OutputSpec {
  std::string name;  ///< "logits", "0", "states.1"; "output" for a single tensor.
  Argument value;    ///< The graph's output.
};

/// The values that a symbol of sizes may have, inclusive.
struct Range {
  std::optional<int64_t> min{}, max{};
};

/// An exported program: a graph in the training IR.
struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::map<std::string, Range> ranges;  ///< By symbol.
  std::string torch_version;
  int64_t schema_major = 0, schema_minor = 0;
};

/// Reads models/NAME.json (schema 8) and validates it: arguments of known kinds, operators that are
/// not higher-order but for the three regions, values that are defined once and before their use,
/// and a graph that was not decomposed. Throws DataError that begins with `file` and names node and
/// source line. Limits: 100 MB of JSON, 16 graphs in one another, 64 dimensions.
Program parse_program(std::string_view json, const std::string& file);

}  // namespace gallop::model::exported

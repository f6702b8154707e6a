#include "gallop/model/exported/node_sharder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/node_values.h"
#include "gallop/model/exported/random_operators.h"

namespace gallop::model::exported {

namespace {

// Operators that compute each element from that of the first operand, but are not tagged so.
constexpr std::array<std::string_view, 31> kUnary = {"aten::to",
                                                     "aten::_to_copy",
                                                     "aten::type_as",
                                                     "aten::clone",
                                                     "aten::contiguous",
                                                     "aten::detach",
                                                     "aten::detach_",
                                                     "aten::alias",
                                                     "aten::dropout",
                                                     "aten::dropout_",
                                                     "aten::lift_fresh_copy",
                                                     "aten::zeros_like",
                                                     "aten::ones_like",
                                                     "aten::full_like",
                                                     "aten::empty_like",
                                                     "aten::gelu_",
                                                     "aten::hardswish",
                                                     "aten::hardswish_",
                                                     "aten::hardsigmoid_",
                                                     "aten::leaky_relu",
                                                     "aten::relu6_",
                                                     "aten::leaky_relu_",
                                                     "aten::selu_",
                                                     "aten::mish_",
                                                     "aten::celu_",
                                                     "aten::elu_",
                                                     "aten::log_sigmoid",
                                                     "aten::hardtanh_",
                                                     "aten::softplus_",
                                                     "aten::threshold_",
                                                     "aten::_assert_tensor_metadata"};

// The same for several operands, which are broadcast.
constexpr std::array<std::string_view, 6> kBroadcast = {"aten::where",        "aten::masked_fill",
                                                        "aten::masked_fill_", "aten::rsub",
                                                        "aten::copy_",        "aten::__and__"};

// Operators that compute along a dimension and keep it.
constexpr std::array<std::string_view, 6> kAlong = {"aten::softmax",     "aten::_softmax",
                                                    "aten::log_softmax", "aten::_log_softmax",
                                                    "aten::cumsum",      "aten::flip"};

// Operators that reduce one or more dimensions.
constexpr std::array<std::string_view, 13> kReductions = {
    "aten::mean", "aten::sum", "aten::amax",      "aten::amin",
    "aten::var",  "aten::std", "aten::logsumexp", "aten::linalg_vector_norm",
    "aten::norm", "aten::max", "aten::min",       "aten::argmax",
    "aten::prod"};

template <size_t size>
bool is_in(const std::array<std::string_view, size>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the operator writes another argument than its first one.
bool writes_others(const c10::FunctionSchema& schema) {
  for (size_t i = 1; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) return true;
  }
  return false;
}

}  // namespace

int64_t rank_of(const Graph& graph, const std::string& tensor) {
  const auto found = graph.tensors.find(tensor);
  return found == graph.tensors.end() ? -1 : static_cast<int64_t>(found->second.sizes.size());
}

std::string tensor_argument(const Node& node, const char* name) {
  const Argument* const given = find_argument(node, name);
  return given == nullptr ? std::string() : tensor_name_of(*given);
}

NodeSharder::NodeSharder(const Graph& graph, const Node& node, const Shards& shards,
                         int64_t processes, std::string& problem)
    : graph_(graph),
      node_(node),
      shards_(shards),
      processes_(processes),
      problem_(problem),
      result_{.node = node} {
  visit_reads(node, [this](const std::string& name, bool is_tensor) {
    if (is_tensor) operands_.push_back(name);
  });
}

bool NodeSharder::fail(std::string problem) {
  problem_ = std::move(problem);
  return false;
}

// An operand may be given twice.
bool NodeSharder::has_one_role_for_each() {
  for (const std::string& name : result_.copied) {
    if (c10::isComplexType(graph_.tensors.at(name).dtype)) {
      return fail("reads complex numbers, whose gradients cannot be summed");
    }
    if (result_.scattered.contains(name)) return fail("reads a tensor both whole and in parts");
  }
  return true;
}

bool NodeSharder::scatter(const std::string& name, const Shard& shard) {
  const auto [found, is_new] = result_.scattered.emplace(name, shard);
  return is_new || found->second == shard || fail("reads a tensor divided in two ways");
}

bool NodeSharder::apply() {
  const auto op = node_.kind == Node::Kind::kOperator ? find_operator(node_) : std::nullopt;
  const std::string& name = node_.function;
  if (!op || operands_.empty()) return fail("needs whole tensors");
  const bool has_results = !results().empty() || name == "aten::sym_size";
  if (!has_results && !op->schema().returns().empty()) return fail("has no results");
  const bool draws_parts = name == "aten::dropout" || name == "aten::dropout_" ||
                           name == "aten::scaled_dot_product_attention";
  if (draws(node_) && !draws_parts) return fail("draws random numbers for a whole tensor");
  if (writes_others(op->schema()) ||
      (op->schema().is_mutable() && find(operands_.front()) == nullptr)) {
    return fail("writes a part of a tensor that is whole");
  }
  if (name == "aten::linear" || name == "aten::addmm") return linear();
  if (name == "aten::matmul" || name == "aten::mm" || name == "aten::bmm" ||
      name == "aten::baddbmm") {
    return product();
  }
  if (name == "aten::scaled_dot_product_attention") return attention();
  if (name == "aten::embedding") return looked_up();
  if (name == "aten::cat" || name == "aten::stack") return joined(name == "aten::stack");
  if (name == "aten::gather") return gathered();
  if (name == "aten::einsum") return einsum();
  const bool returns_tensors = std::all_of(
      op->schema().returns().begin(), op->schema().returns().end(),
      [](const c10::Argument& one) { return one.type()->isSubtypeOf(*c10::TensorType::get()); });
  if (returns_tensors && (op->hasTag(at::Tag::pointwise) || is_in(kBroadcast, name))) {
    return broadcast(/*first=*/0);
  }
  // The others read the data of their first operand, and parameters.
  const Shard* const shard = find(operands_.front());
  if (shard == nullptr) {
    // Only its type and sizes count, such as in type_as().
    if (is_in(kUnary, name)) return true;
    return fail("needs whole tensors");
  }
  return unary(*shard);
}

bool NodeSharder::unary(const Shard& shard) {
  const std::string& name = node_.function;
  if (is_in(kUnary, name)) return set_results(shard);
  if (is_in(kAlong, name)) return along(shard);
  if (is_in(kReductions, name)) return reduced(shard);
  if (name == "aten::layer_norm" || name == "aten::rms_norm") return normalized(shard);
  if (name == "aten::view" || name == "aten::_unsafe_view") return reshaped(shard, "size", 0);
  if (name == "aten::reshape") return reshaped(shard, "shape", 0);
  if (name == "aten::flatten") return reshaped(shard, "", 0);
  if (name == "aten::unflatten") {
    const auto dim = dim_argument("dim", rank());
    return dim && reshaped(shard, *dim == shard.dim ? "sizes" : "", *dim);
  }
  if (name == "aten::expand") return expanded(shard);
  if (name == "aten::repeat") return repeated(shard);
  if (name == "aten::repeat_interleave") return interleaved(shard);
  if (name == "aten::transpose") return transposed(shard, "dim0", "dim1");
  if (name == "aten::swapaxes") return transposed(shard, "axis0", "axis1");
  if (name == "aten::t") {
    return set_results(rank() < 2 ? shard : Shard{1 - shard.dim, shard.group});
  }
  if (name == "aten::permute") return permuted(shard);
  if (name == "aten::unsqueeze") return unsqueezed(shard);
  if (name == "aten::squeeze") return squeezed(shard);
  if (name == "aten::select" || name == "aten::unbind") return selected(shard);
  if (name == "aten::slice") return sliced(shard);
  if (name == "aten::chunk" || name == "aten::split" || name == "aten::split_with_sizes") {
    return split(shard);
  }
  if (name == "aten::glu") return gated(shard);
  if (name == "aten::sym_size") {
    const auto dim = dim_argument("dim", rank());
    return dim && (*dim != shard.dim || fail("reads the size of the divided dimension"));
  }
  return fail("needs whole tensors");
}

std::optional<int64_t> NodeSharder::int_argument(const char* name,
                                                 std::optional<int64_t> otherwise) {
  const Argument* const given = find_argument(node_, name);
  if (given == nullptr || std::holds_alternative<std::monostate>(*given)) return otherwise;
  if (const auto* const number = std::get_if<int64_t>(given)) return *number;
  fail(fmt::format("has an argument '{}' that varies", name));
  return std::nullopt;
}

std::optional<int64_t> NodeSharder::dim_argument(const char* name, int64_t dims,
                                                 std::optional<int64_t> otherwise) {
  const auto dim = int_argument(name, otherwise);
  if (!dim) {
    if (problem_.empty()) fail("needs whole tensors");
    return std::nullopt;
  }
  return in_range(*dim, dims);
}

std::optional<int64_t> NodeSharder::in_range(int64_t dim, int64_t dims) {
  if (dim < 0) dim += dims;
  if (dim >= 0 && dim < dims) return dim;
  fail("has a dimension that there is not");
  return std::nullopt;
}

std::optional<std::vector<int64_t>> NodeSharder::dims_argument(const char* name) {
  const Argument* const given = find_argument(node_, name);
  std::vector<int64_t> dims;
  if (given == nullptr) return dims;
  if (const auto* const one = std::get_if<int64_t>(given)) dims = {*one};
  if (const auto* const list = std::get_if<std::vector<int64_t>>(given)) dims = *list;
  for (int64_t& dim : dims) {
    const auto wrapped = in_range(dim, rank());
    if (!wrapped) return std::nullopt;
    dim = *wrapped;
  }
  return dims;
}

std::vector<std::string> NodeSharder::results() const {
  std::vector<std::string> names;
  visit_results(node_, [&](const std::string& name, bool is_tensor) {
    if (is_tensor) names.push_back(name);
  });
  return names;
}

bool NodeSharder::fail_to_divide(int64_t size) {
  return fail(
      fmt::format("has a dimension of {}, which {} processes do not divide", size, processes_));
}

bool NodeSharder::divide_entry(const char* name, int64_t index) {
  Argument* const given = find_argument(result_.node, name);
  const auto i = static_cast<size_t>(index);
  auto* const list = given == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(given);
  if (list != nullptr && i < list->size()) return divide_size((*list)[i]);
  auto* const scalars = given == nullptr ? nullptr : std::get_if<Scalars<int64_t>>(given);
  if (scalars == nullptr || i >= scalars->size()) return fail("needs whole tensors");
  auto& entry = (*scalars)[i];
  if (auto* const size = std::get_if<int64_t>(&entry)) return divide_size(*size);
  const auto is_left = [](const auto& one) { return one == std::variant<int64_t, ScalarName>(-1); };
  if (std::any_of(scalars->begin(), scalars->end(), is_left)) {
    return fail("has a size that varies along the divided dimension");
  }
  entry = int64_t{-1};
  return true;
}

bool NodeSharder::divide_size(int64_t& size) {
  if (size == -1) return true;
  if (!divides(size)) return fail_to_divide(size);
  size /= processes_;
  return true;
}

void NodeSharder::set_argument(const char* name, int64_t value) {
  if (Argument* const given = find_argument(result_.node, name)) {
    *given = value;
  } else {
    result_.node.inputs.push_back({.name = name, .value = value, .is_keyword = true});
  }
}

}  // namespace gallop::model::exported

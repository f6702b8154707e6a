#include "gallop/model/exported/sharding.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/node_values.h"
#include "gallop/model/exported/random_operators.h"
#include "gallop/model/exported/transitions.h"

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

int64_t rank_of(const Graph& graph, const std::string& tensor) {
  const auto found = graph.tensors.find(tensor);
  return found == graph.tensors.end() ? -1 : static_cast<int64_t>(found->second.sizes.size());
}

// The constant size of a dimension; -1 if it varies.
int64_t constant_of(const Size& size) { return size.is_constant() ? size.hint.value_or(-1) : -1; }

bool is_same(const Size& one, const Size& other) {
  return one.is_constant() ? constant_of(one) == constant_of(other) && constant_of(one) >= 0
                           : one.expression == other.expression;
}

/// The rules for one node.
class NodeSharder {
 public:
  NodeSharder(const Graph& graph, const Node& node, const Shards& shards, int64_t processes,
              std::string& problem)
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

  std::optional<ShardedNode> run() {
    if (!apply() || !has_one_role_for_each()) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // An operand may be given twice.
  bool has_one_role_for_each() {
    for (const std::string& name : result_.copied) {
      if (c10::isComplexType(graph_.tensors.at(name).dtype)) {
        return fail("reads complex numbers, whose gradients cannot be summed");
      }
      if (result_.scattered.contains(name)) return fail("reads a tensor both whole and in parts");
    }
    return true;
  }

  bool scatter(const std::string& name, const Shard& shard) {
    const auto [found, is_new] = result_.scattered.emplace(name, shard);
    return is_new || found->second == shard || fail("reads a tensor divided in two ways");
  }

  bool apply() {
    const auto op = node_.kind == Node::Kind::kOperator ? find_operator(node_) : std::nullopt;
    if (!op || operands_.empty()) return fail("needs whole tensors");
    const std::string& name = node_.function;
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
      return broadcast(operands_, /*first=*/0);
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

  // Whether the operator writes another argument than its first one.
  static bool writes_others(const c10::FunctionSchema& schema) {
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
      const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && alias->isWrite()) return true;
    }
    return false;
  }

  bool unary(const Shard& shard) {
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

  // ---- What the node is given.

  const Shard* find(const std::string& tensor) const {
    const auto found = shards_.find(tensor);
    return found == shards_.end() ? nullptr : &found->second;
  }

  int64_t rank() const { return rank_of(graph_, operands_.front()); }
  const std::vector<Size>& sizes_of(const std::string& tensor) const {
    return graph_.tensors.at(tensor).sizes;
  }
  int64_t size_of(const std::string& tensor, int64_t dim) const {
    return constant_of(sizes_of(tensor)[static_cast<size_t>(dim)]);
  }

  std::string tensor_argument(const char* name) const {
    const Argument* const given = find_argument(node_, name);
    return given == nullptr ? std::string() : tensor_name_of(*given);
  }

  std::optional<int64_t> int_argument(const char* name, std::optional<int64_t> otherwise) {
    const Argument* const given = find_argument(node_, name);
    if (given == nullptr || std::holds_alternative<std::monostate>(*given)) return otherwise;
    if (const auto* const number = std::get_if<int64_t>(given)) return *number;
    fail(fmt::format("has an argument '{}' that varies", name));
    return std::nullopt;
  }

  std::optional<int64_t> dim_argument(const char* name, int64_t dims,
                                      std::optional<int64_t> otherwise = {}) {
    const auto dim = int_argument(name, otherwise);
    if (!dim) {
      if (problem_.empty()) fail("needs whole tensors");
      return std::nullopt;
    }
    return in_range(*dim, dims);
  }

  std::optional<int64_t> in_range(int64_t dim, int64_t dims) {
    if (dim < 0) dim += dims;
    if (dim >= 0 && dim < dims) return dim;
    fail("has a dimension that there is not");
    return std::nullopt;
  }

  // A dimension or a list of them; none if the argument is missing, which stands for all.
  std::optional<std::vector<int64_t>> dims_argument(const char* name) {
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

  std::vector<std::string> results() const {
    std::vector<std::string> names;
    visit_results(node_, [&](const std::string& name, bool is_tensor) {
      if (is_tensor) names.push_back(name);
    });
    return names;
  }

  // ---- What becomes of it.

  bool set_results(const Shard& shard) {
    for (const std::string& name : results()) result_.results[name] = shard;
    return true;
  }

  bool divides(int64_t size) const { return size > 0 && size % processes_ == 0; }

  bool fail_to_divide(int64_t size) {
    return fail(
        fmt::format("has a dimension of {}, which {} processes do not divide", size, processes_));
  }

  // Makes an argument of sizes one for parts; -1 stands for what is left or, in expand(), is kept.
  bool divide_entry(const char* name, int64_t index) {
    Argument* const given = find_argument(result_.node, name);
    const auto i = static_cast<size_t>(index);
    auto* const list = given == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(given);
    if (list != nullptr && i < list->size()) return divide_size((*list)[i]);
    auto* const scalars = given == nullptr ? nullptr : std::get_if<Scalars<int64_t>>(given);
    if (scalars == nullptr || i >= scalars->size()) return fail("needs whole tensors");
    auto& entry = (*scalars)[i];
    if (auto* const size = std::get_if<int64_t>(&entry)) return divide_size(*size);
    const auto is_left = [](const auto& one) {
      return one == std::variant<int64_t, ScalarName>(-1);
    };
    if (std::any_of(scalars->begin(), scalars->end(), is_left)) {
      return fail("has a size that varies along the divided dimension");
    }
    entry = int64_t{-1};
    return true;
  }

  bool divide_size(int64_t& size) {
    if (size == -1) return true;
    if (!divides(size)) return fail_to_divide(size);
    size /= processes_;
    return true;
  }

  // ---- Rules.

  // Operands whose dimensions are broadcast, but for the last `first` ones.
  bool broadcast(const std::vector<std::string>& operands, int64_t first) {
    std::optional<int64_t> place;  // From the last dimension.
    int64_t group = 0;
    Size size;
    for (const std::string& name : operands) {
      const Shard* const shard = find(name);
      if (shard == nullptr) continue;
      const int64_t own = rank_of(graph_, name) - 1 - shard->dim;
      if (place && (*place != own || group != shard->group)) {
        return fail("reads tensors that are divided along different dimensions");
      }
      place = own;
      group = shard->group;
      size = sizes_of(name)[static_cast<size_t>(shard->dim)];
    }
    if (!place || *place < first) return fail("needs the whole of the divided dimension");
    for (const std::string& name : operands) {
      if (find(name) != nullptr) continue;
      const int64_t dim = rank_of(graph_, name) - 1 - *place;
      if (dim < 0 || size_of(name, dim) == 1) {
        result_.copied.insert(name);
      } else if (!is_same(sizes_of(name)[static_cast<size_t>(dim)], size)) {
        return fail("has an operand whose size differs along the divided dimension");
      } else if (!scatter(name, {dim, group})) {
        return false;
      }
    }
    for (const std::string& name : results()) {
      const int64_t dim = rank_of(graph_, name) - 1 - *place;
      if (dim < 0) return fail("needs whole tensors");
      result_.results[name] = {dim, group};
    }
    return true;
  }

  bool linear() {
    const auto call = find_linear_call(graph_, node_);
    if (!call) return fail("needs whole tensors");
    const Shard* const weight = find(call->weight);
    const Shard* const input = find(call->input);
    const int64_t last = rank_of(graph_, call->input) - 1;
    if (weight != nullptr && weight->dim == call->out_dim) {
      if (input != nullptr) return fail("reads a tensor that is divided already");
      result_.copied.insert(call->input);
      if (!call->bias.empty() && find(call->bias) == nullptr) {
        if (!scatter(call->bias, {0, weight->group})) return false;
      }
      return set_results({last, weight->group});
    }
    if (!call->bias.empty() && find(call->bias) != nullptr) return fail("needs its whole bias");
    if (weight != nullptr) {
      const Shard whole{last, weight->group};
      if (input == nullptr) {
        if (!scatter(call->input, whole)) return false;
      } else if (*input != whole) {
        return fail("reads a tensor that is divided differently");
      }
      result_.is_partial_sum = true;
      result_.bias = call->bias;
      drop_bias();
      return true;
    }
    if (input == nullptr || input->dim == last) {
      return fail("needs all channels, as its weight is not divided by inputs (rowwise)");
    }
    result_.copied.insert(call->weight);
    if (!call->bias.empty()) result_.copied.insert(call->bias);
    return set_results(*input);
  }

  void drop_bias() {
    auto& inputs = result_.node.inputs;
    if (node_.function == "aten::linear") {
      std::erase_if(inputs, [](const NamedArgument& one) { return one.name == "bias"; });
    } else if (node_.function == "aten::addmm") {
      result_.node.function = "aten::mm";
      inputs = {{.name = "self", .value = *find_argument(node_, "mat1")},
                {.name = "mat2", .value = *find_argument(node_, "mat2")}};
    }
  }

  // The divided dimension must be one of the result.
  bool einsum() {
    const Argument* const given = find_argument(node_, "equation");
    const auto* const equation = given == nullptr ? nullptr : std::get_if<std::string>(given);
    std::string text = equation == nullptr ? "" : *equation;
    std::erase(text, ' ');
    const size_t arrow = text.find("->");
    if (arrow == std::string::npos || text.find('.') != std::string::npos) {
      return fail("has an equation with '...' or without '->'");
    }
    std::vector<std::string> terms{""};
    for (const char letter : text.substr(0, arrow)) {
      if (letter == ',') {
        terms.emplace_back();
      } else {
        terms.back() += letter;
      }
    }
    const std::string result = text.substr(arrow + 2);
    if (terms.size() != operands_.size()) return fail("needs whole tensors");
    char letter = 0;
    int64_t group = 0;
    Size size;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (static_cast<int64_t>(terms[i].size()) != rank_of(graph_, operands_[i])) {
        return fail("needs whole tensors");
      }
      const Shard* const shard = find(operands_[i]);
      if (shard == nullptr) continue;
      const char own = terms[i][static_cast<size_t>(shard->dim)];
      if (letter != 0 && (own != letter || shard->group != group)) {
        return fail("reads tensors that are divided along different dimensions");
      }
      letter = own;
      group = shard->group;
      size = sizes_of(operands_[i])[static_cast<size_t>(shard->dim)];
    }
    if (result.find(letter) == std::string::npos) return fail("reduces the divided dimension");
    for (size_t i = 0; i < terms.size(); ++i) {
      if (std::count(terms[i].begin(), terms[i].end(), letter) > 1) {
        return fail("takes a diagonal of the divided dimension");
      }
      if (find(operands_[i]) != nullptr) continue;
      const size_t dim = terms[i].find(letter);
      if (dim == std::string::npos || constant_of(sizes_of(operands_[i])[dim]) == 1) {
        result_.copied.insert(operands_[i]);
      } else if (!is_same(sizes_of(operands_[i])[dim], size)) {
        return fail("has an operand whose size differs along the divided dimension");
      } else if (!scatter(operands_[i], {static_cast<int64_t>(dim), group})) {
        return false;
      }
    }
    return set_results({static_cast<int64_t>(result.find(letter)), group});
  }

  // Elements along another dimension, by indices of the same sizes otherwise.
  bool gathered() {
    if (!broadcast(operands_, /*first=*/0)) return false;
    const auto dim = dim_argument("dim", rank());
    if (!dim) return false;
    if (*dim == result_.results.begin()->second.dim) {
      return fail("gathers along the divided dimension");
    }
    return result_.copied.empty() || fail("needs whole tensors");
  }

  // Each process has some rows of the table. The result is whole.
  bool looked_up() {
    const std::string table = tensor_argument("weight"), indices = tensor_argument("indices");
    const Shard* const shard = find(table);
    if (find(indices) != nullptr || shard == nullptr || shard->dim != 0 ||
        shard->group != size_of(table, 0) || !is_look_up(node_, table)) {
      return fail("needs whole tensors");
    }
    const auto padding = int_argument("padding_idx", -1);
    if (!padding) return false;
    result_.node =
        look_up_in_region(node_, table, indices, size_of(table, 0), *padding, results().front());
    return true;
  }

  // Of rows and columns; those in front of them are broadcast.
  bool product() {
    const auto call = find_linear_call(graph_, node_);
    if (call && find(call->weight) != nullptr) return linear();
    for (const std::string& name : operands_) {
      if (rank_of(graph_, name) < 2) return fail("needs whole tensors");
    }
    return broadcast(operands_, /*first=*/2);
  }

  // All have their heads in as many groups.
  bool attention() {
    const std::string query = tensor_argument("query");
    const int64_t heads_dim = rank_of(graph_, query) - 3;
    std::optional<int64_t> groups;
    for (const char* const name : {"query", "key", "value"}) {
      const std::string tensor = tensor_argument(name);
      const int64_t dim = rank_of(graph_, tensor) - 3;
      const Shard* const shard = find(tensor);
      if (dim < 0 || (shard != nullptr && shard->dim != dim)) {
        return fail("needs all channels of a head");
      }
      const int64_t size = size_of(tensor, dim);
      // Of a size that varies, the groups must be equal.
      const int64_t here = shard == nullptr ? 1 : size < 0 ? -shard->group : size / shard->group;
      if (groups && *groups != here) return fail("reads heads that are divided differently");
      groups = here;
      if (shard != nullptr) continue;
      if (!divides(size)) return fail_to_divide(size);
      if (!scatter(tensor, {dim, size})) return false;
    }
    const Shard* const of_query = find(query);
    const Shard heads{heads_dim, of_query != nullptr ? of_query->group : size_of(query, heads_dim)};
    const std::string mask = tensor_argument("attn_mask");
    if (!mask.empty()) {
      const int64_t dim = rank_of(graph_, mask) - 3;
      const Shard* const shard = find(mask);
      if (shard != nullptr) {
        if (shard->dim != dim || shard->group != heads.group) return fail("needs the whole mask");
      } else if (dim < 0 || size_of(mask, dim) == 1) {
        result_.copied.insert(mask);
      } else if (!is_same(sizes_of(mask)[static_cast<size_t>(dim)],
                          sizes_of(query)[static_cast<size_t>(heads_dim)])) {
        return fail("has a mask whose number of heads differs");
      } else if (!scatter(mask, {dim, heads.group})) {
        return false;
      }
    }
    return set_results(heads);
  }

  bool joined(bool is_stack) {
    const Shard* first = nullptr;
    Size size;
    for (const std::string& name : operands_) {
      const Shard* const shard = find(name);
      if (shard == nullptr) continue;
      if (first != nullptr && *first != *shard) {
        return fail("reads tensors that are divided along different dimensions");
      }
      first = shard;
      size = sizes_of(name)[static_cast<size_t>(shard->dim)];
    }
    const auto dim = dim_argument("dim", rank() + (is_stack ? 1 : 0), 0);
    if (!dim) return false;
    for (const std::string& name : operands_) {
      if (find(name) != nullptr) continue;
      // cat() ignores it.
      if (rank_of(graph_, name) == 1 && size_of(name, 0) == 0) continue;
      if (rank_of(graph_, name) <= first->dim) return fail("needs whole tensors");
      const Size& own = sizes_of(name)[static_cast<size_t>(first->dim)];
      if (!is_same(own, size) && constant_of(own) % first->group != 0) {
        return fail("has an operand whose size differs along the divided dimension");
      }
      if (!scatter(name, *first)) return false;
    }
    const bool is_before = is_stack && *dim <= first->dim;
    return set_results({first->dim + (is_before ? 1 : 0), first->group});
  }

  bool along(const Shard& shard) {
    const char* const name = node_.function == "aten::flip" ? "dims" : "dim";
    const auto dims = dims_argument(name);
    if (!dims) return false;
    if (std::count(dims->begin(), dims->end(), shard.dim) > 0) {
      return fail("computes along the divided dimension");
    }
    return set_results(shard);
  }

  bool reduced(const Shard& shard) {
    const auto dims = dims_argument("dim");
    if (!dims) return false;
    if (dims->empty() || std::count(dims->begin(), dims->end(), shard.dim) > 0) {
      return fail("reduces the divided dimension");
    }
    const Argument* const keeps = find_argument(node_, "keepdim");
    const bool keeps_dims = keeps != nullptr && *keeps == Argument(true);
    const auto before =
        std::count_if(dims->begin(), dims->end(), [&](int64_t dim) { return dim < shard.dim; });
    return set_results({keeps_dims ? shard.dim : shard.dim - before, shard.group});
  }

  bool normalized(const Shard& shard) {
    const Argument* const shape = find_argument(node_, "normalized_shape");
    const auto* const dims = shape == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(shape);
    if (dims == nullptr || shard.dim >= rank() - static_cast<int64_t>(dims->size())) {
      return fail("normalizes along the divided dimension");
    }
    for (size_t i = 1; i < operands_.size(); ++i) result_.copied.insert(operands_[i]);
    return set_results(shard);
  }

  // Between the same elements in other dimensions: those of the input from `begin` to `end` become
  // those of the result from `first` to `last`.
  struct Segment {
    size_t begin = 0, end = 0, first = 0, last = 0;
  };

  // The smallest segment with the dimension; nothing if sizes are unknown.
  static std::optional<Segment> segment_of(size_t dim, const std::vector<Size>& in,
                                           const std::vector<Size>& out) {
    Segment segment;
    while (segment.begin < in.size()) {
      segment.end = segment.begin;
      segment.last = segment.first;
      int64_t of_in = 1, of_out = 1;
      do {
        const bool takes_in = segment.end == segment.begin || of_in <= of_out;
        if (takes_in && segment.end < in.size()) {
          if (!in[segment.end].hint) return std::nullopt;
          of_in *= *in[segment.end++].hint;
        } else if (segment.last < out.size()) {
          if (!out[segment.last].hint) return std::nullopt;
          of_out *= *out[segment.last++].hint;
        } else {
          return std::nullopt;
        }
      } while (of_in != of_out || segment.last == segment.first);
      if (dim < segment.end) return segment;
      segment.begin = segment.end;
      segment.first = segment.last;
    }
    return std::nullopt;
  }

  // `sizes` is the argument with the sizes of the result from dimension `from` on, if there is one.
  // In the order of memory, parts are equally long pieces of equally long blocks. That is so before
  // and after, with a dimension that has a whole number of pieces.
  bool reshaped(const Shard& shard, const char* sizes, int64_t from) {
    const auto& in = sizes_of(operands_.front());
    const auto& out = sizes_of(results().front());
    const auto segment = segment_of(static_cast<size_t>(shard.dim), in, out);
    if (!segment) return fail("has sizes that vary");
    int64_t block = shard.group;
    for (size_t i = static_cast<size_t>(shard.dim) + 1; i < segment->end; ++i) {
      if (constant_of(in[i]) < 1) return fail("has sizes that vary");
      block *= constant_of(in[i]);
    }
    int64_t piece = 1;
    for (size_t i = segment->last; i-- > segment->first && block % piece == 0;) {
      const int64_t group = block / piece, size = constant_of(out[i]);
      const bool fits = size > 0 ? size % group == 0 : i == segment->first;
      if (fits && group > 1) {
        if (!divides(group)) return fail_to_divide(group);
        if (*sizes != 0 && !divide_entry(sizes, static_cast<int64_t>(i) - from)) return false;
        return set_results({static_cast<int64_t>(i), group});
      }
      if (size < 1) break;
      piece *= size;
    }
    return fail("would spread each part over several dimensions of the result");
  }

  bool expanded(const Shard& shard) {
    const int64_t dim = shard.dim + rank_of(graph_, results().front()) - rank();
    return divide_entry("size", dim) && set_results({dim, shard.group});
  }

  // Copies of the divided dimension are further groups.
  bool repeated(const Shard& shard) {
    const int64_t dim = shard.dim + rank_of(graph_, results().front()) - rank();
    return set_results({dim, shard.group});
  }

  bool interleaved(const Shard& shard) {
    const auto dim = dim_argument("dim", rank()), repeats = int_argument("repeats", {});
    if (!dim || !repeats) return false;
    if (*dim != shard.dim) return set_results(shard);
    if (find_argument(node_, "output_size") != nullptr) return fail("needs whole tensors");
    return set_results({shard.dim, shard.group * *repeats});
  }

  bool transposed(const Shard& shard, const char* one_name, const char* other_name) {
    const auto one = dim_argument(one_name, rank()), other = dim_argument(other_name, rank());
    if (!one || !other) return false;
    const int64_t dim = shard.dim == *one ? *other : shard.dim == *other ? *one : shard.dim;
    return set_results({dim, shard.group});
  }

  bool permuted(const Shard& shard) {
    const auto dims = dims_argument("dims");
    if (!dims) return false;
    const auto found = std::find(dims->begin(), dims->end(), shard.dim);
    if (found == dims->end()) return fail("needs whole tensors");
    return set_results({found - dims->begin(), shard.group});
  }

  bool unsqueezed(const Shard& shard) {
    const auto dim = dim_argument("dim", rank() + 1);
    return dim && set_results({shard.dim + (*dim <= shard.dim ? 1 : 0), shard.group});
  }

  bool squeezed(const Shard& shard) {
    int64_t dim = shard.dim;
    const auto dims = dims_argument("dim");
    if (!dims) return false;
    if (dims->empty()) return fail("needs all sizes");
    for (const int64_t one : *dims) {
      if (one == shard.dim) return fail("squeezes the divided dimension");
      if (one < shard.dim && size_of(operands_.front(), one) == 1) dim -= 1;
    }
    return set_results({dim, shard.group});
  }

  // select() and unbind(), which remove a dimension.
  bool selected(const Shard& shard) {
    const auto dim = dim_argument("dim", rank(), 0);
    if (!dim) return false;
    if (*dim == shard.dim) return fail("selects from the divided dimension");
    return set_results({shard.dim - (*dim < shard.dim ? 1 : 0), shard.group});
  }

  bool sliced(const Shard& shard) {
    const auto dim = dim_argument("dim", rank(), 0);
    if (!dim) return false;
    if (*dim != shard.dim) return set_results(shard);
    const int64_t size = size_of(operands_.front(), shard.dim);
    const auto start = int_argument("start", 0), step = int_argument("step", 1);
    const auto end = int_argument("end", std::numeric_limits<int64_t>::max());
    if (!start || !end || !step) return false;
    if (size < 0) return fail("has a size that varies along the divided dimension");
    const auto place = [size](int64_t index) {
      return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
    };
    const int64_t from = place(*start), to = place(*end);
    if (*step != 1 || from % shard.group != 0 || to % shard.group != 0) {
      return fail("slices the divided dimension");
    }
    set_argument("start", from / processes_);
    set_argument("end", to / processes_);
    return set_results(shard);
  }

  void set_argument(const char* name, int64_t value) {
    if (Argument* const given = find_argument(result_.node, name)) {
      *given = value;
    } else {
      result_.node.inputs.push_back({.name = name, .value = value, .is_keyword = true});
    }
  }

  // chunk() and split() give the groups of the divided dimension.
  bool split(const Shard& shard) {
    const auto dim = dim_argument("dim", rank(), 0);
    if (!dim) return false;
    if (*dim != shard.dim) return set_results(shard);
    for (const std::string& piece : results()) {
      const int64_t size = size_of(piece, shard.dim);
      if (size < 0 || size % shard.group != 0) return fail("splits the divided dimension");
    }
    for (NamedArgument& input : result_.node.inputs) {
      if (!input.name.starts_with("split_size")) continue;
      if (auto* const one = std::get_if<int64_t>(&input.value)) *one /= processes_;
      if (auto* const list = std::get_if<std::vector<int64_t>>(&input.value)) {
        for (int64_t& length : *list) length /= processes_;
      }
    }
    return set_results(shard);
  }

  // Two halves, of which one is a factor of the other.
  bool gated(const Shard& shard) {
    const auto dim = dim_argument("dim", rank(), -1);
    if (!dim) return false;
    if (*dim != shard.dim) return set_results(shard);
    if (size_of(results().front(), *dim) % shard.group != 0) {
      return fail("splits the divided dimension");
    }
    return set_results(shard);
  }

  const Graph& graph_;
  const Node& node_;
  const Shards& shards_;
  int64_t processes_;
  std::string& problem_;
  ShardedNode result_;
  std::vector<std::string> operands_;  // The tensors that it reads, in order.
};

// Whether an argument has its default value of 1, or is given as that.
bool is_one(const Node& node, const char* name) {
  const Argument* const given = find_argument(node, name);
  return given == nullptr || *given == Argument(int64_t{1}) || *given == Argument(1.0);
}

}  // namespace

std::optional<LinearCall> find_linear_call(const Graph& graph, const Node& node) {
  if (node.kind != Node::Kind::kOperator || !node.overload.empty()) return std::nullopt;
  const auto tensor = [&](const char* name) {
    const Argument* const given = find_argument(node, name);
    return given == nullptr ? std::string() : tensor_name_of(*given);
  };
  LinearCall call{.in_dim = 0, .out_dim = 1};
  if (node.function == "aten::linear") {
    call = {.input = tensor("input"),
            .weight = tensor("weight"),
            .bias = tensor("bias"),
            .in_dim = 1,
            .out_dim = 0};
  } else if (node.function == "aten::addmm" && is_one(node, "beta") && is_one(node, "alpha")) {
    call.bias = tensor("self");
    call.input = tensor("mat1");
    call.weight = tensor("mat2");
  } else if (node.function == "aten::mm") {
    call.input = tensor("self");
    call.weight = tensor("mat2");
  } else if (node.function == "aten::matmul") {
    call.input = tensor("self");
    call.weight = tensor("other");
  }
  if (rank_of(graph, call.weight) != 2 || rank_of(graph, call.input) < 2) return std::nullopt;
  if (call.bias.empty()) return call;
  const auto& weight = graph.tensors.at(call.weight).sizes;
  const auto& bias = graph.tensors.at(call.bias).sizes;
  const bool is_whole =
      bias.size() == 1 && is_same(bias.front(), weight[static_cast<size_t>(call.out_dim)]);
  return is_whole ? std::optional(call) : std::nullopt;
}

bool is_look_up(const Node& node, const std::string& table) {
  const auto is_off = [&](const char* name) {
    const Argument* const given = find_argument(node, name);
    return given == nullptr || *given == Argument(false);
  };
  const Argument* const weight = find_argument(node, "weight");
  return node.function == "aten::embedding" && weight != nullptr &&
         tensor_name_of(*weight) == table && is_off("scale_grad_by_freq") && is_off("sparse");
}

std::optional<ShardedNode> shard_node(const Graph& graph, const Node& node, const Shards& shards,
                                      int64_t processes, std::string& problem) {
  problem.clear();
  return NodeSharder(graph, node, shards, processes, problem).run();
}

}  // namespace gallop::model::exported

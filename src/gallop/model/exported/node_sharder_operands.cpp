#include <algorithm>

#include "gallop/model/exported/node_sharder.h"
#include "gallop/model/exported/transitions.h"

namespace gallop::model::exported {

// Operands whose dimensions are broadcast, but for the last `first` ones.
bool NodeSharder::broadcast(int64_t first) {
  std::optional<int64_t> place;  // From the last dimension.
  int64_t group = 0;
  Size size;
  for (const std::string& name : operands_) {
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
  for (const std::string& name : operands_) {
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

bool NodeSharder::linear() {
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

void NodeSharder::drop_bias() {
  auto& inputs = result_.node.inputs;
  if (node_.function == "aten::linear") {
    std::erase_if(inputs, [](const NamedArgument& one) { return one.name == "bias"; });
  } else if (node_.function == "aten::addmm") {
    result_.node.function = "aten::mm";
    inputs = {{.name = "self", .value = *find_argument(node_, "mat1")},
              {.name = "mat2", .value = *find_argument(node_, "mat2")}};
  }
}

// Handles products of rows and columns; dimensions in front of them are broadcast.
bool NodeSharder::product() {
  const auto call = find_linear_call(graph_, node_);
  if (call && find(call->weight) != nullptr) return linear();
  for (const std::string& name : operands_) {
    if (rank_of(graph_, name) < 2) return fail("needs whole tensors");
  }
  return broadcast(/*first=*/2);
}

// The divided dimension must be one of the result.
bool NodeSharder::einsum() {
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
bool NodeSharder::gathered() {
  if (!broadcast(/*first=*/0)) return false;
  const auto dim = dim_argument("dim", rank());
  if (!dim) return false;
  if (*dim == result_.results.begin()->second.dim) {
    return fail("gathers along the divided dimension");
  }
  return result_.copied.empty() || fail("needs whole tensors");
}

// Each process has some rows of the table. The result is whole.
bool NodeSharder::looked_up() {
  const std::string table = tensor_argument(node_, "weight"),
                    indices = tensor_argument(node_, "indices");
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

// All have their heads in as many groups.
bool NodeSharder::attention() {
  const std::string query = tensor_argument(node_, "query");
  const int64_t heads_dim = rank_of(graph_, query) - 3;
  std::optional<int64_t> groups;
  for (const char* const name : {"query", "key", "value"}) {
    const std::string tensor = tensor_argument(node_, name);
    const int64_t dim = rank_of(graph_, tensor) - 3;
    const Shard* const shard = find(tensor);
    if (dim < 0 || (shard != nullptr && shard->dim != dim)) {
      return fail("needs all channels of a head");
    }
    const int64_t size = size_of(tensor, dim);
    // If a size varies, the groups must be equal.
    const int64_t here = shard == nullptr ? 1 : size < 0 ? -shard->group : size / shard->group;
    if (groups && *groups != here) return fail("reads heads that are divided differently");
    groups = here;
    if (shard != nullptr) continue;
    if (!divides(size)) return fail_to_divide(size);
    if (!scatter(tensor, {dim, size})) return false;
  }
  const Shard* const of_query = find(query);
  const Shard heads{heads_dim, of_query != nullptr ? of_query->group : size_of(query, heads_dim)};
  const std::string mask = tensor_argument(node_, "attn_mask");
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

// cat() along the divided dimension gives the groups of one tensor after those of another.
bool NodeSharder::joined(bool is_stack) {
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

}  // namespace gallop::model::exported

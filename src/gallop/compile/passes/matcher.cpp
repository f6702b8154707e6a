#include "gallop/compile/passes/matcher.h"

#include <algorithm>
#include <numeric>

#include <c10/util/typeid.h>

namespace gallop::compile::passes {

namespace {

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

bool contains(const std::vector<int64_t>& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void apply(Graph& graph, Rewrite&& rewrite) {
  for (auto& [before, node] : rewrite.added) {
    for (const int64_t removed : rewrite.removed) {
      add_origins(node, graph.nodes[static_cast<size_t>(removed)].origins);
    }
    if (node.origins.empty()) node.origins = graph.nodes[static_cast<size_t>(before)].origins;
  }
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    for (auto& [before, node] : rewrite.added) {
      if (before == index) nodes.push_back(std::move(node));
    }
    if (!contains(rewrite.removed, index)) nodes.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace

bool Matcher::is(int64_t index, std::string_view op) const {
  if (index == kNone) return false;
  const auto& name = node(index).op.operator_name();
  if (name.overload_name.empty()) return op == name.name;
  return op.size() == name.name.size() + 1 + name.overload_name.size() &&
         op.substr(0, name.name.size()) == name.name && op[name.name.size()] == '.' &&
         op.substr(name.name.size() + 1) == name.overload_name;
}

bool Matcher::is_one_of(int64_t index, std::initializer_list<std::string_view> ops) const {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return is(index, op); });
}

ViewId Matcher::argument(int64_t index, size_t number) const {
  const Operand& operand = node(index).arguments[number];
  return operand.kind == Operand::Kind::kTensor ? operand.views[0] : kNone;
}

const c10::IValue& Matcher::constant(int64_t index, size_t number) const {
  return node(index).arguments[number].constant;
}

ViewId Matcher::result(int64_t index, size_t number) const {
  const Operand& operand = node(index).results[number];
  return operand.kind == Operand::Kind::kTensor ? operand.views[0] : kNone;
}

int64_t Matcher::source_of(ViewId tensor) const {
  if (tensor == kNone || !is_value(graph_, uses_, view(tensor).buffer)) return kNone;
  return uses(tensor).writers[0];
}

int64_t Matcher::maker_of(ViewId tensor, size_t number) const {
  const int64_t maker = source_of(tensor);
  if (maker == kNone || number >= node(maker).results.size()) return kNone;
  const ViewId made = result(maker, number);
  return made != kNone && same_elements(graph_, made, tensor) ? maker : kNone;
}

std::vector<int64_t> Matcher::readers_of(ViewId tensor) const { return uses(tensor).readers; }

bool Matcher::is_output(ViewId tensor) const { return uses(tensor).is_output; }

bool Matcher::is_only_read_by(ViewId tensor, const std::vector<int64_t>& nodes) const {
  const Uses& of = uses(tensor);
  return is_value(graph_, uses_, view(tensor).buffer) && !of.is_output &&
         std::all_of(of.readers.begin(), of.readers.end(),
                     [&](int64_t reader) { return contains(nodes, reader); });
}

bool Matcher::can_be_read_at(ViewId tensor, int64_t from, int64_t to) const {
  return tensor == kNone || is_unchanged_between(uses(tensor), from, to);
}

bool Matcher::is_untouched_between(ViewId tensor, int64_t from, int64_t to) const {
  for (const auto* list : {&uses(tensor).readers, &uses(tensor).writers}) {
    for (const int64_t node : *list) {
      if (from < node && node < to) return false;
    }
  }
  return true;
}

at::Tensor Matcher::stand_in(ViewId id) const {
  if (id == kNone) return {};
  const View& of = view(id);
  const auto device = graph_.buffer_of(id).device;
  const auto key = device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::Meta;
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, device));
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(of.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(of.sizes, of.strides, of.offset);
  return tensor;
}

ViewId Matcher::reshaped(ViewId tensor, std::vector<int64_t> sizes) {
  View of = view(tensor);
  of.strides = contiguous_strides(sizes);
  of.sizes = std::move(sizes);
  return graph_.intern(of);
}

ViewId Matcher::fresh(std::vector<int64_t> sizes, at::ScalarType dtype, ViewId beside) {
  View made{.buffer = static_cast<BufferId>(graph_.buffers.size()),
            .offset = 0,
            .sizes = std::move(sizes),
            .strides = {},
            .dtype = dtype};
  made.strides = contiguous_strides(made.sizes);
  Buffer buffer;
  buffer.bytes = made.numel() * static_cast<int64_t>(c10::elementSize(dtype));
  if (beside != kNone) buffer.device = graph_.buffer_of(beside).device;
  graph_.buffers.push_back(std::move(buffer));
  return graph_.intern(made);
}

std::optional<std::pair<ViewId, ViewId>> operands_of_sum(const Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::add.Tensor")) return std::nullopt;
  const ViewId a = matcher.argument(index, 0), b = matcher.argument(index, 1);
  const auto& factor = matcher.constant(index, 2);
  if (a == kNone || b == kNone || !factor.isInt() || factor.toInt() != 1) return std::nullopt;
  const auto& sizes = matcher.view(matcher.result(index)).sizes;
  if (matcher.view(a).sizes != sizes || matcher.view(b).sizes != sizes) return std::nullopt;
  return std::pair(a, b);
}

bool is_plain_cast(const Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::_to_copy")) return false;
  const ViewId from = matcher.argument(index, 0), to = matcher.result(index);
  return from != kNone && is_whole(matcher.graph(), from) && is_whole(matcher.graph(), to) &&
         is_laid_out_alike(matcher.view(from), matcher.view(to));
}

bool is_one(const Matcher& matcher, int64_t index, size_t number) {
  const auto& value = matcher.constant(index, number);
  return value.isInt() && value.toInt() == 1;
}

ViewId unconverted(const Matcher& matcher, ViewId tensor, int64_t reader) {
  const int64_t cast = matcher.maker_of(tensor);
  if (!is_plain_cast(matcher, cast)) return tensor;
  const ViewId source = matcher.argument(cast, 0);
  return matcher.view(source).dtype == c10::kFloat && matcher.can_be_read_at(source, cast, reader)
             ? source
             : tensor;
}

int64_t only_reader_of(const Matcher& matcher, int64_t index) {
  const ViewId made = matcher.result(index);
  const auto readers = matcher.readers_of(made);
  const bool is_found = readers.size() == 1 && !matcher.is_output(made) &&
                        matcher.maker_of(matcher.argument(readers[0], 0)) == index;
  return is_found ? readers[0] : kNone;
}

bool is_relu_backward(const Matcher& matcher, int64_t index) {
  return matcher.is(index, "aten::threshold_backward") && matcher.constant(index, 2).isScalar() &&
         matcher.constant(index, 2).toScalar().toDouble() == 0;
}

std::optional<WeightGradient> weight_gradient(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::mm")) return std::nullopt;
  const ViewId transposed_dy = matcher.argument(index, 0), x = matcher.argument(index, 1);
  const ViewId weight = matcher.result(index);
  if (transposed_dy == kNone || x == kNone || weight == kNone ||
      !is_contiguous(matcher.view(weight))) {
    return std::nullopt;
  }
  return WeightGradient{
      .dy = matcher.intern(transposed(matcher.view(transposed_dy))), .x = x, .weight = weight};
}

int64_t widening_of(const Matcher& matcher, int64_t index) {
  const int64_t reader = only_reader_of(matcher, index);
  const bool widens = reader != kNone && is_plain_cast(matcher, reader) &&
                      matcher.view(matcher.result(reader)).dtype == c10::kFloat;
  return widens ? reader : kNone;
}

int64_t column_sums_of(const Matcher& matcher, ViewId tensor) {
  if (!is_contiguous(matcher.view(tensor))) return kNone;
  for (const int64_t reader : matcher.readers_of(tensor)) {
    if (!matcher.is(reader, "aten::sum.dim_IntList")) continue;
    const ViewId summed = matcher.argument(reader, 0), sums = matcher.result(reader);
    const auto& sizes = matcher.view(summed).sizes;
    if (!same_elements(matcher.graph(), tensor, summed) ||
        sizes.back() != matcher.view(tensor).sizes.back() ||
        !matcher.constant(reader, 1).isIntList()) {
      continue;
    }
    auto dimensions = matcher.constant(reader, 1).toIntVector();
    for (int64_t& dimension : dimensions) {
      if (dimension < 0) dimension += static_cast<int64_t>(sizes.size());
    }
    std::sort(dimensions.begin(), dimensions.end());
    std::vector<int64_t> all_but_last(sizes.size() - 1);
    std::iota(all_but_last.begin(), all_but_last.end(), int64_t{0});
    const auto format = matcher.view(sums).dtype;
    if (dimensions == all_but_last && (format == c10::kFloat || format == c10::kBFloat16)) {
      return reader;
    }
  }
  return kNone;
}

bool is_laid_out_alike(const View& a, const View& b) {
  if (a.sizes != b.sizes) return false;
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

bool is_channels_last(const Matcher& matcher, ViewId tensor) {
  return tensor != kNone && matcher.stand_in(tensor).is_contiguous(at::MemoryFormat::ChannelsLast);
}

int64_t rows_of(const View& view) { return view.numel() / view.sizes.back(); }

Operand no_tensor() { return {.kind = Operand::Kind::kTensor, .constant = {}, .views = {kNone}}; }

void rewrite_all(Graph& graph,
                 const std::function<std::optional<Rewrite>(Matcher&, int64_t)>& match) {
  for (bool found = true; found;) {
    found = false;
    Matcher matcher(graph);
    for (size_t i = 0; i < graph.nodes.size() && !found; ++i) {
      auto rewrite = match(matcher, static_cast<int64_t>(i));
      if (!rewrite) continue;
      apply(graph, std::move(*rewrite));
      found = true;
    }
  }
  compact(graph);
}

}  // namespace gallop::compile::passes

#include <algorithm>
#include <optional>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/moved_views.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/compile/passes/place.h"

// Shapes: N rows, K inputs, O outputs of a layer, and S of all layers of a group together.
namespace gallop::compile::passes {

namespace {

/// y = x w^T (+ bias), and the nodes of its gradients.
struct Layer {
  int64_t node = kNone;
  ViewId x = kNone, weight = kNone;  ///< [N, K], [O, K].
  ViewId bias = kNone;               ///< [O], or kNone.
  ViewId y = kNone;                  ///< [N, O]

  int64_t dx = kNone, dweight = kNone, dbias = kNone;  ///< The last may be kNone.
  ViewId dy = kNone;                                   ///< [N, O]
};

using Layers = std::vector<Layer>;

std::optional<Layer> layer_at(Matcher& matcher, int64_t index) {
  const bool has_bias = matcher.is(index, "aten::addmm");
  if (!has_bias && !matcher.is(index, "aten::mm")) return std::nullopt;
  if (has_bias && !(matcher.constant(index, 3).toScalar().toDouble() == 1 &&
                    matcher.constant(index, 4).toScalar().toDouble() == 1)) {
    return std::nullopt;
  }
  const size_t first = has_bias ? 1 : 0;
  const ViewId x = matcher.argument(index, first),
               transposed_view = matcher.argument(index, first + 1);
  const ViewId y = matcher.result(index), bias = has_bias ? matcher.argument(index, 0) : kNone;
  if (x == kNone || transposed_view == kNone || y == kNone || (has_bias && bias == kNone)) {
    return std::nullopt;
  }
  const View weight = transposed(matcher.view(transposed_view));
  const bool fits = weight.numel() > 0 && !weight.is_conj && !matcher.view(x).is_conj &&
                    is_contiguous(weight) && !is_contiguous(matcher.view(transposed_view)) &&
                    is_contiguous(matcher.view(y)) && is_whole(matcher.graph(), y) &&
                    (!has_bias || matcher.view(bias).sizes == std::vector{weight.sizes[0]});
  if (!fits) return std::nullopt;
  return Layer{.node = index, .x = x, .weight = matcher.intern(weight), .bias = bias, .y = y};
}

/// All layers of the same kind on the input of the layer at `index`, which is the first of them.
Layers layers_from(Matcher& matcher, int64_t index) {
  const auto first = layer_at(matcher, index);
  if (!first) return {};
  Layers layers;
  for (const int64_t reader : matcher.readers_of(first->x)) {
    const auto layer = layer_at(matcher, reader);
    if (!layer || layer->x != first->x || (layer->bias == kNone) != (first->bias == kNone))
      continue;
    const bool known = std::any_of(layers.begin(), layers.end(), [&](const Layer& other) {
      return other.weight == layer->weight;
    });
    if (known) return {};
    if (reader >= index) layers.push_back(*layer);
  }
  return layers;
}

int64_t outputs_of(const Matcher& matcher, const Layer& layer) {
  return matcher.view(layer.weight).sizes[0];
}

int64_t outputs_of(const Matcher& matcher, const Layers& layers) {
  int64_t sum = 0;
  for (const Layer& layer : layers) sum += outputs_of(matcher, layer);
  return sum;
}

/// Whether the layers compute queries, keys and values: the attention kernel needs them packed.
bool feed_attention(const Matcher& matcher, const Layers& layers) {
  return layers.size() == 3 && std::all_of(layers.begin(), layers.end(), [&](const Layer& layer) {
           const auto readers = matcher.readers_of(layer.y);
           return std::any_of(readers.begin(), readers.end(),
                              [&](int64_t reader) { return is_flash_attention(matcher, reader); });
         });
}

/// Whether one GEMM is worth concatenating weights and gradients at each step. Without
/// attention that is so for narrow data types and GEMMs that are not large (bench_fusion); in fp32
/// it has no benefit.
bool pays(const Matcher& matcher, const Layers& layers) {
  if (layers.size() < 2) return false;
  if (feed_attention(matcher, layers)) return true;
  const View& x = matcher.view(layers[0].x);
  const int64_t products = x.numel() * outputs_of(matcher, layers);
  constexpr int64_t kFewestRows = 16, kMostProducts = int64_t{1} << 29;
  return (x.dtype == c10::kBFloat16 || x.dtype == c10::kHalf) && x.sizes[0] >= kFewestRows &&
         products <= kMostProducts;
}

Node call(const char* op, const char* overload, std::vector<Operand> arguments, ViewId result) {
  return {.op = c10::Dispatcher::singleton().findSchemaOrThrow(op, overload),
          .arguments = std::move(arguments),
          .results = {Operand::of(result)}};
}

/// A concatenation of `parts`, one for each layer, along a dimension.
Node side_by_side(std::vector<ViewId> parts, int64_t dimension, ViewId result) {
  Operand list{.kind = Operand::Kind::kTensors, .constant = {}, .views = std::move(parts)};
  return call("aten::cat", "", {std::move(list), Operand::of(c10::IValue(dimension))}, result);
}

template <typename Member>
std::vector<ViewId> all_of(const Layers& layers, Member member) {
  std::vector<ViewId> views;
  for (const Layer& layer : layers) views.push_back(layer.*member);
  return views;
}

/// Merges the GEMMs of all layers, which compute y, into one.
bool group_forward(Matcher& matcher, const Layers& layers, MovedViews& moves, Rewrite& change) {
  std::vector<Use> read;
  for (const Layer& layer : layers) {
    read.push_back({layer.x, layer.node});
    read.push_back({layer.weight, layer.node});
    if (layer.bias != kNone) read.push_back({layer.bias, layer.node});
    if (!matcher.is_only_read_by(layer.y, matcher.readers_of(layer.y))) return false;
  }
  const auto place =
      place_for(matcher, layers.front().node, layers.back().node, read, all_of(layers, &Layer::y));
  if (!place) return false;
  const View& x = matcher.view(layers[0].x);
  const int64_t rows = x.sizes[0], inputs = x.sizes[1], outputs = outputs_of(matcher, layers);
  const auto dtype = x.dtype;
  const ViewId weights = matcher.fresh({outputs, inputs}, dtype, layers[0].x);
  const ViewId y = matcher.fresh({rows, outputs}, dtype, layers[0].x);
  const ViewId transposed_view = matcher.intern(transposed(matcher.view(weights)));
  int64_t column = 0;
  for (const Layer& layer : layers) {
    if (!moves.add_columns(layer.y, y, column)) return false;
    column += outputs_of(matcher, layer);
    change.removed.push_back(layer.node);
  }
  for (const Layer& layer : layers) {
    if (!moves.suit_readers_of(layer.y)) return false;
  }
  move_to(matcher, *place, change);
  const auto add = [&](Node node) { change.added.emplace_back(place->node, std::move(node)); };
  add(side_by_side(all_of(layers, &Layer::weight), 0, weights));
  if (layers[0].bias == kNone) {
    add(call("aten::mm", "", {Operand::of(layers[0].x), Operand::of(transposed_view)}, y));
    return true;
  }
  const ViewId bias = matcher.fresh({outputs}, matcher.view(layers[0].bias).dtype, layers[0].x);
  add(side_by_side(all_of(layers, &Layer::bias), 0, bias));
  const auto one = Operand::of(c10::IValue(1));
  add(call("aten::addmm", "",
           {Operand::of(bias), Operand::of(layers[0].x), Operand::of(transposed_view), one, one},
           y));
  return true;
}

int64_t only(const std::vector<int64_t>& nodes) { return nodes.size() == 1 ? nodes[0] : kNone; }

template <typename Fits>
int64_t only_reader(const Matcher& matcher, ViewId tensor, const Fits& fits) {
  std::vector<int64_t> found;
  for (const int64_t reader : matcher.readers_of(tensor)) {
    if (fits(reader)) found.push_back(reader);
  }
  return only(found);
}

/// Finds the nodes of a layer's gradients; false if any is missing.
bool find_gradients(Matcher& matcher, Layer& layer) {
  layer.dx = only_reader(matcher, layer.weight, [&](int64_t node) {
    return node > layer.node && matcher.is(node, "aten::mm") &&
           matcher.argument(node, 1) == layer.weight;
  });
  if (layer.dx == kNone) return false;
  layer.dy = matcher.argument(layer.dx, 0);
  if (layer.dy == kNone || matcher.source_of(layer.dy) == kNone) return false;
  const ViewId transposed_view = matcher.intern(transposed(matcher.view(layer.dy)));
  layer.dweight = only_reader(matcher, layer.dy, [&](int64_t node) {
    return matcher.is(node, "aten::mm") && matcher.argument(node, 0) == transposed_view &&
           matcher.argument(node, 1) == layer.x;
  });
  layer.dbias = only_reader(matcher, layer.dy, [&](int64_t node) {
    return matcher.is(node, "aten::sum.dim_IntList") && matcher.argument(node, 0) == layer.dy &&
           matcher.constant(node, 1).isIntList() &&
           matcher.constant(node, 1).toIntVector() == std::vector<int64_t>{0};
  });
  const auto plain = [&](int64_t node) {
    const ViewId made = matcher.result(node);
    return made != kNone && is_whole(matcher.graph(), made) && is_contiguous(matcher.view(made)) &&
           matcher.is_only_read_by(made, matcher.readers_of(made));
  };
  return layer.dweight != kNone && plain(layer.dx) && plain(layer.dweight) &&
         (layer.bias == kNone || (layer.dbias != kNone && plain(layer.dbias)));
}

/// The sum of the gradients of x by all layers.
struct Sum {
  int64_t first_cast = kNone;  ///< A cast of each before the sum, or kNone.
  ViewId result = kNone;
  ViewId other = kNone;  ///< Another term of the sum, or kNone.
  int64_t node = kNone;  ///< The last addition.
  std::vector<int64_t> removed;
};

/// The tree of additions of only these gradients and at most one other tensor.
std::optional<Sum> sum_of_gradients(const Matcher& matcher, const Layers& layers) {
  Sum sum;
  std::vector<ViewId> open;
  for (const Layer& layer : layers) {
    ViewId part = matcher.result(layer.dx);
    const int64_t reader = only(matcher.readers_of(part));
    if (is_plain_cast(matcher, reader)) {
      if (sum.first_cast == kNone) sum.first_cast = reader;
      sum.removed.push_back(reader);
      part = matcher.result(reader);
    }
    open.push_back(part);
  }
  if (!sum.removed.empty() && sum.removed.size() != layers.size()) return std::nullopt;
  const auto position = [&](ViewId view) {
    return std::find_if(open.begin(), open.end(), [&](ViewId part) {
      return matcher.view(part).buffer == matcher.view(view).buffer;
    });
  };
  while (open.size() > 1) {
    // The first addition of one of them.
    int64_t next = kNone;
    for (const ViewId part : open) {
      const int64_t reader = only(matcher.readers_of(part));
      if (reader == kNone || !matcher.is_only_read_by(part, {reader})) return std::nullopt;
      next = next == kNone ? reader : std::min(next, reader);
    }
    const auto operands = operands_of_sum(matcher, next);
    if (!operands) return std::nullopt;
    const View& made = matcher.view(matcher.result(next));
    for (const ViewId operand : {operands->first, operands->second}) {
      const View& view = matcher.view(operand);
      if (!is_contiguous(view) || !is_contiguous(made) || view.dtype != made.dtype) {
        return std::nullopt;
      }
      if (const auto found = position(operand); found != open.end()) {
        if (!is_whole(matcher.graph(), operand)) return std::nullopt;
        open.erase(found);
      } else if (sum.other == kNone) {
        sum.other = operand;
      } else {
        return std::nullopt;
      }
    }
    sum.node = next;
    sum.removed.push_back(next);
    sum.result = matcher.result(next);
    open.push_back(sum.result);
  }
  return sum;
}

/// The gradients of all layers, and the positions at which one node may replace those of a kind.
struct Gradients {
  Layers layers;
  std::vector<int64_t> nodes;
  Sum sum;
  Place place;
};

std::optional<Gradients> gradients_of(Matcher& matcher, Layers layers) {
  std::vector<Use> read;
  std::vector<ViewId> made;
  std::vector<int64_t> nodes;
  for (Layer& layer : layers) {
    if (!find_gradients(matcher, layer)) return std::nullopt;
    read.push_back({layer.x, layer.dweight});
    read.push_back({layer.weight, layer.dx});
    for (const int64_t node : {layer.dx, layer.dweight, layer.dbias}) {
      if (node == kNone) continue;
      read.push_back({layer.dy, node});
      nodes.push_back(node);
      if (node != layer.dx) made.push_back(matcher.result(node));
    }
  }
  auto sum = sum_of_gradients(matcher, layers);
  if (!sum) return std::nullopt;
  const auto [first, last] = std::minmax_element(nodes.begin(), nodes.end());
  auto place = place_for(matcher, *first, *last, read, made);
  if (!place || place->node > sum->node) return std::nullopt;
  return Gradients{.layers = std::move(layers),
                   .nodes = std::move(nodes),
                   .sum = *std::move(sum),
                   .place = *std::move(place)};
}

/// Adds the gradient of x as one GEMM, with the cast and the addition of its former parts.
void add_dx(Matcher& matcher, const Gradients& all, ViewId dy, ViewId weights, Rewrite& change) {
  const Sum& sum = all.sum;
  const ViewId x = all.layers[0].x;
  const View layout = matcher.view(x);
  const auto add = [&](int64_t place, Node node) {
    change.added.emplace_back(place, std::move(node));
  };
  const auto in_rows = [&](ViewId view) { return matcher.reshaped(view, layout.sizes); };
  // Writes the sum's own result directly if no cast or addition follows the GEMM.
  const bool is_last = sum.first_cast == kNone && sum.other == kNone;
  const ViewId dx = is_last ? in_rows(sum.result) : matcher.fresh(layout.sizes, layout.dtype, x);
  add(all.place.node, call("aten::mm", "", {Operand::of(dy), Operand::of(weights)}, dx));
  ViewId part = dx;
  if (sum.first_cast != kNone) {
    Node cast = matcher.node(sum.first_cast);
    const auto to = matcher.view(sum.result).dtype;
    part = sum.other == kNone ? in_rows(sum.result) : matcher.fresh(layout.sizes, to, x);
    cast.arguments[0] = Operand::of(dx);
    cast.results[0] = Operand::of(part);
    add(all.place.node, std::move(cast));
  }
  if (sum.other == kNone) return;
  Node addition = matcher.node(sum.node);
  const auto sizes = matcher.view(sum.result).sizes;
  addition.arguments[0] = Operand::of(sum.other);
  addition.arguments[1] = Operand::of(matcher.reshaped(part, sizes));
  add(sum.node, std::move(addition));
}

/// Adds the sum over the rows of dy, [S].
ViewId add_dbias(Matcher& matcher, const Gradients& all, ViewId dy, Rewrite& change) {
  Node total = matcher.node(all.layers[0].dbias);
  const ViewId first = matcher.result(all.layers[0].dbias);
  auto sizes = matcher.view(first).sizes;
  sizes.back() = outputs_of(matcher, all.layers);
  const ViewId dbias = matcher.fresh(sizes, matcher.view(first).dtype, all.layers[0].x);
  total.arguments[0] = Operand::of(dy);
  total.results[0] = Operand::of(dbias);
  change.added.emplace_back(all.place.node, std::move(total));
  return dbias;
}

/// Computes the gradients of x, weights and biases of all layers by one GEMM, one GEMM and one
/// reduction, from the concatenated gradients of y.
bool group_backward(Matcher& matcher, const Layers& layers, MovedViews& moves, Rewrite& change) {
  const auto all = gradients_of(matcher, layers);
  if (!all) return false;
  const ViewId x = layers[0].x;
  const int64_t rows = matcher.view(x).sizes[0], inputs = matcher.view(x).sizes[1];
  const int64_t outputs = outputs_of(matcher, layers);
  const auto dtype = matcher.view(x).dtype;
  const ViewId dy = matcher.fresh({rows, outputs}, dtype, x);
  const ViewId weights = matcher.fresh({outputs, inputs}, dtype, x);
  const ViewId dweights = matcher.fresh({outputs, inputs}, dtype, x);
  move_to(matcher, all->place, change);
  const auto add = [&](Node node) { change.added.emplace_back(all->place.node, std::move(node)); };
  add(side_by_side(all_of(all->layers, &Layer::dy), 1, dy));
  add(side_by_side(all_of(layers, &Layer::weight), 0, weights));
  add_dx(matcher, *all, dy, weights, change);
  const ViewId transposed_view = matcher.intern(transposed(matcher.view(dy)));
  add(call("aten::mm", "", {Operand::of(transposed_view), Operand::of(x)}, dweights));
  const ViewId dbias = layers[0].bias != kNone ? add_dbias(matcher, *all, dy, change) : kNone;
  int64_t row = 0;
  for (const Layer& layer : all->layers) {
    if (!moves.add_shifted(matcher.result(layer.dweight), dweights, row * inputs) ||
        (dbias != kNone && !moves.add_shifted(matcher.result(layer.dbias), dbias, row))) {
      return false;
    }
    row += outputs_of(matcher, layer);
  }
  change.removed.insert(change.removed.end(), all->nodes.begin(), all->nodes.end());
  change.removed.insert(change.removed.end(), all->sum.removed.begin(), all->sum.removed.end());
  return true;
}

std::optional<Rewrite> group(Matcher& matcher, int64_t index) {
  const Layers layers = layers_from(matcher, index);
  if (!pays(matcher, layers)) return std::nullopt;
  MovedViews moves(matcher);
  Rewrite change;
  if (!group_forward(matcher, layers, moves, change)) return std::nullopt;
  MovedViews with_gradients = moves;
  Rewrite both = change;
  if (group_backward(matcher, layers, with_gradients, both)) {
    with_gradients.apply_to(both);
    return both;
  }
  moves.apply_to(change);
  return change;
}

}  // namespace

void merge_matmuls(Graph& graph) { rewrite_all(graph, group); }

}  // namespace gallop::compile::passes

#include <algorithm>
#include <map>
#include <string>

#include "gallop/compile/codegen/cuda_compiler.h"
#include "gallop/compile/codegen/cuda_driver.h"
#include "gallop/compile/passes/calls.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

using List = std::vector<int64_t>;

// Arguments and results of batch norm, both LibTorch's own and cuDNN's.
enum Norm : size_t { kX, kWeight, kBias, kRunningMean, kRunningVar, kTraining, kMomentum, kEps };
enum NormResult : size_t { kY, kMean, kInverse, kReserve };

bool is_on_gpu(const Matcher& matcher, ViewId tensor) {
  return tensor != kNone && matcher.graph().buffer_of(tensor).device.is_cuda();
}

bool is_float(at::ScalarType type) {
  return type == c10::kFloat || type == c10::kBFloat16 || type == c10::kHalf;
}

// Whether these are scales or statistics: fp32, contiguous, of this size.
bool is_row(const Matcher& matcher, ViewId tensor, int64_t numbers) {
  return tensor != kNone && matcher.view(tensor).dtype == c10::kFloat &&
         matcher.view(tensor).numel() == numbers && is_contiguous(matcher.view(tensor));
}

// Whether the layouts are equal, whatever the data types. kNone equals all.
bool is_like(const Matcher& matcher, ViewId tensor, const View& x) {
  return tensor == kNone ||
         (is_float(matcher.view(tensor).dtype) && is_laid_out_alike(matcher.view(tensor), x));
}

ViewId result_or_none(const Matcher& matcher, int64_t node, size_t number) {
  return number < matcher.node(node).results.size() ? matcher.result(node, number) : kNone;
}

List dims_but(const View& x, size_t kept) {
  List dims;
  for (size_t i = 0; i < x.sizes.size(); ++i) {
    if (i != kept) dims.push_back(static_cast<int64_t>(i));
  }
  return dims;
}

// Whether the reductions per channel form one loop: of columns if channels are adjacent, else
// of rows. The limits are those of fused_loop().
bool has_channel_loop(const View& x) {
  if (!is_float(x.dtype) || x.sizes.size() < 2 || !x.is_dense()) return false;
  const int64_t channels = x.sizes[1];
  if (channels == 0 || x.numel() / channels < 2) return false;
  if (x.strides[1] == 1) return channels >= 8;
  return is_contiguous(x) && channels >= 16 && x.sizes.back() >= 8;
}

// A [C] tensor as a view that broadcasts to x.
ViewId for_channels(Calls& calls, ViewId row, const View& x) {
  View view = calls.view(row);
  view.sizes.assign(x.sizes.size(), 1);
  view.strides.assign(x.sizes.size(), 1);
  view.sizes[1] = x.sizes[1];
  return calls.intern(view);
}

// The tensor as one dimension.
ViewId as_row(Calls& calls, ViewId tensor) {
  View view = calls.view(tensor);
  view.sizes = {view.numel()};
  view.strides = {1};
  return calls.intern(view);
}

// The first element of each channel.
ViewId first_of_channels(Calls& calls, ViewId tensor) {
  View view = calls.view(tensor);
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (i != 1) view.sizes[i] = 1;
  }
  return calls.intern(view);
}

ViewId in_fp32(Calls& calls, ViewId tensor) {
  return calls.view(tensor).dtype == c10::kFloat ? tensor : calls.cast(tensor, c10::kFloat);
}

bool takes_batch_norm(const Matcher& matcher, int64_t node) {
  if (!matcher.is_one_of(node, {"aten::native_batch_norm", "aten::cudnn_batch_norm"}) ||
      !matcher.constant(node, kTraining).toBool()) {
    return false;
  }
  const ViewId x = matcher.argument(node, kX), y = matcher.result(node);
  if (!is_on_gpu(matcher, x) || y == kNone) return false;
  const View& shape = matcher.view(x);
  if (!has_channel_loop(shape) || !is_like(matcher, y, shape)) return false;
  for (const size_t row : {kWeight, kBias, kRunningMean, kRunningVar}) {
    if (!is_row(matcher, matcher.argument(node, row), shape.sizes[1])) return false;
  }
  for (const size_t row : {kMean, kInverse}) {
    const ViewId saved = result_or_none(matcher, node, row);
    if (saved != kNone && !is_row(matcher, saved, shape.sizes[1])) return false;
  }
  // Only cuDNN's gradient can read it.
  const ViewId reserve = result_or_none(matcher, node, kReserve);
  return reserve == kNone || (matcher.readers_of(reserve).empty() && !matcher.is_output(reserve));
}

// Computes mean and variance of x minus the first element of each channel: that reads x only
// once, and a mean far from 0 costs no precision.
std::optional<Rewrite> batch_norm(Matcher& matcher, int64_t node) {
  if (!takes_batch_norm(matcher, node)) return std::nullopt;
  Calls calls(matcher, node);
  const ViewId x = matcher.argument(node, kX);
  const View shape = matcher.view(x);
  const List dims = dims_but(shape, 1);
  const int64_t elements = shape.numel() / shape.sizes[1];
  const auto count = static_cast<double>(elements);
  const auto row = [&](size_t argument) {
    return for_channels(calls, matcher.argument(node, argument), shape);
  };
  const ViewId first = first_of_channels(calls, x);
  const ViewId off = calls.subtract(in_fp32(calls, x), first);
  const ViewId mean_off = calls.mean(off, dims),
               mean_square = calls.mean(calls.multiply(off, off), dims);
  const ViewId mean = calls.add(mean_off, first, result_or_none(matcher, node, kMean));
  const ViewId variance =
      calls.at_least(calls.subtract(mean_square, calls.multiply(mean_off, mean_off)), 0);
  const ViewId inverse = calls.rsqrt(calls.add(variance, matcher.constant(node, kEps).toDouble()),
                                     result_or_none(matcher, node, kInverse));
  const ViewId unbiased = calls.multiply(variance, count / (count - 1));
  const ViewId normed = calls.multiply(calls.subtract(x, mean), inverse);
  const ViewId scaled = calls.add(calls.multiply(normed, row(kWeight)), row(kBias));
  calls.cast(scaled, matcher.view(matcher.result(node)).dtype, matcher.result(node));
  calls.move_towards({{matcher.argument(node, kRunningMean), as_row(calls, mean)},
                      {matcher.argument(node, kRunningVar), as_row(calls, unbiased)}},
                     matcher.constant(node, kMomentum).toDouble());
  return std::move(calls).finish();
}

// The inputs of both forms of a batch norm's gradient.
struct Given {
  ViewId dy, x, weight, mean, inverse;
};

std::optional<Given> batch_norm_gradient_of(const Matcher& matcher, int64_t node) {
  const bool own = matcher.is(node, "aten::native_batch_norm_backward");
  if (!own && !matcher.is(node, "aten::cudnn_batch_norm_backward")) return std::nullopt;
  if (own && !matcher.constant(node, 7).toBool()) return std::nullopt;
  const Given given{.dy = matcher.argument(node, own ? 0 : 1),
                    .x = matcher.argument(node, own ? 1 : 0),
                    .weight = matcher.argument(node, 2),
                    .mean = matcher.argument(node, 5),
                    .inverse = matcher.argument(node, 6)};
  if (!is_on_gpu(matcher, given.x) || given.dy == kNone) return std::nullopt;
  const View& shape = matcher.view(given.x);
  if (!has_channel_loop(shape) || !is_like(matcher, given.dy, shape) ||
      !is_like(matcher, result_or_none(matcher, node, 0), shape)) {
    return std::nullopt;
  }
  for (const ViewId row : {given.weight, given.mean, given.inverse}) {
    if (!is_row(matcher, row, shape.sizes[1])) return std::nullopt;
  }
  return given;
}

std::optional<Rewrite> batch_norm_gradient(Matcher& matcher, int64_t node) {
  const auto given = batch_norm_gradient_of(matcher, node);
  if (!given) return std::nullopt;
  Calls calls(matcher, node);
  const View shape = matcher.view(given->x);
  const List dims = dims_but(shape, 1);
  const double share = static_cast<double>(shape.sizes[1]) / static_cast<double>(shape.numel());
  const ViewId mean = for_channels(calls, given->mean, shape),
               inverse = for_channels(calls, given->inverse, shape),
               weight = for_channels(calls, given->weight, shape);
  // Computed at each use: keeping it would cost more.
  const auto normed = [&] { return calls.multiply(calls.subtract(given->x, mean), inverse); };
  const ViewId sum = calls.sum(given->dy, dims, true, result_or_none(matcher, node, 2));
  const ViewId mean_sum = calls.multiply(sum, share);  // Here, it is part of the sums' loop.
  const ViewId along =
      calls.sum(calls.multiply(given->dy, normed()), dims, true, result_or_none(matcher, node, 1));
  const ViewId dx = result_or_none(matcher, node, 0);
  if (dx != kNone) {
    const ViewId centered = calls.subtract(given->dy, mean_sum);
    const ViewId change =
        calls.subtract(centered, calls.multiply(normed(), calls.multiply(along, share)));
    calls.cast(calls.multiply(calls.multiply(change, inverse), weight), matcher.view(dx).dtype, dx);
  }
  return std::move(calls).finish();
}

// Whether the node updates running statistics and may be moved to the end.
bool can_update_last(const Matcher& matcher, int64_t node) {
  if (!matcher.is(node, "aten::_foreach_lerp_.Scalar")) return false;
  const auto end = static_cast<int64_t>(matcher.graph().nodes.size());
  const auto& arguments = matcher.node(node).arguments;
  const auto is_free = [&](ViewId to) { return matcher.is_untouched_between(to, node, end); };
  const auto is_there = [&](ViewId from) { return matcher.can_be_read_at(from, node, end); };
  return std::all_of(arguments[0].views.begin(), arguments[0].views.end(), is_free) &&
         std::all_of(arguments[1].views.begin(), arguments[1].views.end(), is_there);
}

// What the node adds to a counter of batches, if that may be done at the end.
std::optional<double> counts_last(const Matcher& matcher, int64_t node) {
  if (!matcher.is_one_of(node, {"aten::add_.Tensor", "aten::add_.Scalar"})) return std::nullopt;
  const ViewId counter = matcher.argument(node, 0);
  const auto end = static_cast<int64_t>(matcher.graph().nodes.size());
  if (counter == kNone || matcher.argument(node, 1) != kNone ||
      matcher.view(counter).dtype != c10::kLong || matcher.view(counter).numel() != 1 ||
      !matcher.is_untouched_between(counter, node, end)) {
    return std::nullopt;
  }
  const c10::IValue &added = matcher.constant(node, 1), &factor = matcher.constant(node, 2);
  const double number =
      added.isTensor() ? added.toTensor().item<double>() : added.toScalar().toDouble();
  return number * factor.toScalar().toDouble();
}

// Merges the updates of all running statistics, and of all counters, into one call each at the end,
// outside of loops.
void update_last(Graph& graph) {
  const Matcher matcher(graph);
  std::map<double, Node> updates;  // By the factor of the update.
  std::map<double, Operand> counters;
  std::vector<int32_t> counted;  // The origins of the counters' nodes.
  std::vector<bool> removed(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (const auto added = counts_last(matcher, at)) {
      removed[i] = true;
      Operand& list = counters[*added];
      list.kind = Operand::Kind::kTensors;
      list.views.push_back(matcher.argument(at, 0));
      counted.insert(counted.end(), graph.nodes[i].origins.begin(), graph.nodes[i].origins.end());
    }
    if (!can_update_last(matcher, at)) continue;
    removed[i] = true;
    const Node& node = graph.nodes[i];
    const auto [all, is_first] =
        updates.try_emplace(matcher.constant(at, 2).toScalar().toDouble(), node);
    add_origins(all->second, node.origins);
    for (const size_t list : {0, 1}) {
      auto& views = all->second.arguments[list].views;
      const auto& more = node.arguments[list].views;
      if (!is_first) views.insert(views.end(), more.begin(), more.end());
    }
  }
  remove_nodes(graph, removed);
  for (auto& update : updates) graph.nodes.push_back(std::move(update.second));
  for (auto& [added, list] : counters) {
    graph.nodes.push_back(
        {.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_foreach_add_", "Scalar"),
         .arguments = {std::move(list),
                       Operand::of(c10::IValue(c10::Scalar(static_cast<int64_t>(added))))},
         .results = {}});
    add_origins(graph.nodes.back(), counted);
  }
}

// Whether fused_loop() fuses rows of the last dimension into one loop.
bool has_row_loop(const Matcher& matcher, ViewId tensor, const c10::IValue& normalized) {
  if (!is_on_gpu(matcher, tensor) || !normalized.isIntList()) return false;
  const View& x = matcher.view(tensor);
  const auto shape = normalized.toIntVector();
  return is_float(x.dtype) && is_contiguous(x) && x.numel() > 0 && shape.size() == 1 &&
         x.sizes.size() > 1 && shape[0] == x.sizes.back() && shape[0] >= 8 && rows_of(x) >= 16;
}

// Decomposes layer norm, and RMS norm, which has no mean and no bias.
std::optional<Rewrite> layer_norm(Matcher& matcher, int64_t node) {
  const bool rms = matcher.is(node, "aten::_fused_rms_norm");
  if (!rms && !matcher.is(node, "aten::native_layer_norm")) return std::nullopt;
  const ViewId x = matcher.argument(node, 0), weight = matcher.argument(node, 2),
               bias = rms ? kNone : matcher.argument(node, 3), y = matcher.result(node);
  const c10::IValue& eps = matcher.constant(node, rms ? 3 : 4);
  if (!has_row_loop(matcher, x, matcher.constant(node, 1)) || y == kNone || !eps.isDouble()) {
    return std::nullopt;
  }
  const View shape = matcher.view(x);
  if (!is_like(matcher, y, shape) || !is_row(matcher, weight, shape.sizes.back()) ||
      (bias != kNone && !is_row(matcher, bias, shape.sizes.back()))) {
    return std::nullopt;
  }
  Calls calls(matcher, node);
  const List last = {static_cast<int64_t>(shape.sizes.size()) - 1};
  const ViewId off = rms ? in_fp32(calls, x)
                         : calls.subtract(x, calls.mean(x, last, result_or_none(matcher, node, 1)));
  const ViewId square = calls.mean(calls.multiply(off, off), last);
  const ViewId inverse =
      calls.rsqrt(calls.add(square, eps.toDouble()), result_or_none(matcher, node, rms ? 1 : 2));
  ViewId scaled = calls.multiply(calls.multiply(off, inverse), weight);
  if (bias != kNone) scaled = calls.add(scaled, bias);
  calls.cast(scaled, matcher.view(y).dtype, y);
  return std::move(calls).finish();
}

std::optional<Rewrite> layer_norm_gradient(Matcher& matcher, int64_t node) {
  const bool rms = matcher.is(node, "aten::_fused_rms_norm_backward");
  if (!rms && !matcher.is(node, "aten::native_layer_norm_backward")) return std::nullopt;
  const ViewId dy = matcher.argument(node, 0), x = matcher.argument(node, 1),
               mean = rms ? kNone : matcher.argument(node, 3),
               inverse = matcher.argument(node, rms ? 3 : 4),
               weight = matcher.argument(node, rms ? 4 : 5), dx = matcher.result(node);
  if (!has_row_loop(matcher, x, matcher.constant(node, 2)) || dy == kNone) return std::nullopt;
  const View shape = matcher.view(x);
  if (!is_like(matcher, dy, shape) || !is_like(matcher, dx, shape) ||
      !is_row(matcher, weight, shape.sizes.back()) || !is_row(matcher, inverse, rows_of(shape)) ||
      (!rms && !is_row(matcher, mean, rows_of(shape)))) {
    return std::nullopt;
  }
  Calls calls(matcher, node);
  const size_t width = shape.sizes.size() - 1;
  const List last = {static_cast<int64_t>(width)}, rows = dims_but(shape, width);
  const ViewId off = rms ? in_fp32(calls, x) : calls.subtract(x, mean);
  const ViewId normed = calls.multiply(off, inverse);
  if (const ViewId to = result_or_none(matcher, node, 1); to != kNone) {
    calls.sum(calls.multiply(dy, normed), rows, false, to);
  }
  if (const ViewId to = result_or_none(matcher, node, 2); to != kNone) {
    calls.sum(dy, rows, false, to);
  }
  if (dx != kNone) {
    const ViewId g = calls.multiply(dy, weight);
    const ViewId along = calls.mean(calls.multiply(g, normed), last);
    ViewId change = calls.subtract(g, calls.multiply(normed, along));
    if (!rms) change = calls.subtract(change, calls.mean(g, last));
    calls.cast(calls.multiply(change, inverse), matcher.view(dx).dtype, dx);
  }
  return std::move(calls).finish();
}

}  // namespace

void split_norms(Graph& graph) {
  rewrite_all(graph, [](Matcher& matcher, int64_t index) {
    for (const auto match : {batch_norm_gradient, batch_norm, layer_norm, layer_norm_gradient}) {
      if (auto change = match(matcher, index)) return change;
    }
    return std::optional<Rewrite>();
  });
  update_last(graph);
}

void norm_loops(Graph& graph, PassContext& context) {
  std::string missing;
  if (is_on_gpu(graph) && CudaDriver::open(missing, context.compiler.cuda_driver()) &&
      context.compiler.cuda().is_there(missing)) {
    split_norms(graph);
  }
}

}  // namespace gallop::compile::passes

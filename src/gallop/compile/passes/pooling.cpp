#include <algorithm>
#include <map>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/global_avg_pool.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::mean.dim, and those of aten::avg_pool2d after x.
enum Mean : size_t { kDim = 1, kDtype = 3 };
enum Window : size_t { kSize, kStride, kPadding, kCeil, kCountPadding, kDivisor };

bool is_image(const View& view) { return view.sizes.size() == 4; }

// Whether the window that the arguments from `first` on describe is all of x.
bool is_whole_image(const Matcher& matcher, int64_t index, size_t first, const View& x) {
  const auto all = [&](Window argument, const std::vector<int64_t>& wanted) {
    std::vector<int64_t> sizes = matcher.constant(index, first + argument).toIntVector();
    if (sizes.size() == 1) sizes.push_back(sizes.front());
    return sizes == wanted;
  };
  return is_image(x) && all(kSize, {x.sizes[2], x.sizes[3]}) && all(kPadding, {0, 0}) &&
         matcher.constant(index, first + kDivisor).isNone();
}

// Whether the node is the mean over the pixels of x.
bool is_mean_of_pixels(const Matcher& matcher, int64_t index, const View& x) {
  if (!is_image(x) || !matcher.constant(index, kDim).isIntList() ||
      !matcher.constant(index, kDtype).isNone()) {
    return false;
  }
  std::vector<int64_t> dimensions = matcher.constant(index, kDim).toIntVector();
  for (int64_t& dimension : dimensions) dimension = dimension < 0 ? dimension + 4 : dimension;
  std::sort(dimensions.begin(), dimensions.end());
  return dimensions == std::vector<int64_t>{2, 3};
}

std::optional<Rewrite> forward(Matcher& matcher, int64_t index) {
  const ViewId x = matcher.argument(index, 0), y = matcher.result(index);
  if (x == kNone || !kernel::takes_global_avg_pool(matcher.stand_in(x)) ||
      !is_contiguous(matcher.view(y))) {
    return std::nullopt;
  }
  const View& image = matcher.view(x);
  const bool matches = matcher.is(index, "aten::mean.dim")
                           ? is_mean_of_pixels(matcher, index, image)
                           : is_whole_image(matcher, index, 1, image);
  if (!matches) return std::nullopt;
  const ViewId row = matcher.reshaped(y, {image.sizes[0], image.sizes[1]});
  return Rewrite{.removed = {index},
                 .added = {{index, Node{.op = kernel::global_avg_pool_operator(),
                                        .arguments = {Operand::of(x)},
                                        .results = {Operand::of(row)}}}}};
}

// The gradient of the mean of each channel, [N, C], spread over images of these sizes.
Node gradient_node(ViewId dy, const std::vector<int64_t>& sizes, ViewId dx) {
  return Node{.op = kernel::global_avg_pool_backward_operator(),
              .arguments = {Operand::of(dy), Operand::of(c10::IValue(sizes[2])),
                            Operand::of(c10::IValue(sizes[3]))},
              .results = {Operand::of(dx)}};
}

std::optional<Rewrite> pool_gradient(Matcher& matcher, int64_t index) {
  const ViewId dy = matcher.argument(index, 0), x = matcher.argument(index, 1);
  const ViewId dx = matcher.result(index);
  if (dy == kNone || x == kNone || !kernel::takes_global_avg_pool(matcher.stand_in(x)) ||
      !is_channels_last(matcher, dx) || !is_contiguous(matcher.view(dy)) ||
      !is_whole_image(matcher, index, 2, matcher.view(x))) {
    return std::nullopt;
  }
  const std::vector<int64_t> sizes = matcher.view(x).sizes;
  return Rewrite{
      .removed = {index},
      .added = {{index, gradient_node(matcher.reshaped(dy, {sizes[0], sizes[1]}), sizes, dx)}}};
}

/// A gradient that becomes channels_last, with what is computed from it. LibTorch computes the
/// gradient of mean() without knowing the memory format of its argument.
class Reformatted {
 public:
  explicit Reformatted(Matcher& matcher) : matcher_(matcher) {}

  /// Makes the image channels_last. False if one of its readers needs the old format, or none has
  /// other images that are channels_last.
  bool add(ViewId image) {
    std::vector<ViewId> open = {image};
    while (!open.empty()) {
      const ViewId old = open.back();
      open.pop_back();
      if (!is_replaceable(old)) return false;
      moved_[old] = channels_last(old);
      for (const int64_t reader : matcher_.readers_of(old)) {
        if (!follow(reader, open)) return false;
      }
    }
    return true;
  }

  ViewId now(ViewId id) const {
    const auto found = moved_.find(id);
    return found == moved_.end() ? id : found->second;
  }

  void apply() const {
    for (Node& node : matcher_.graph().nodes) {
      for (auto* operands : {&node.arguments, &node.results}) {
        for (Operand& operand : *operands) {
          for (ViewId& view : operand.views) view = now(view);
        }
      }
    }
  }

 private:
  // Whether a value is read as this image alone.
  bool is_replaceable(ViewId image) const {
    if (!is_whole(matcher_.graph(), image) || matcher_.source_of(image) == kNone ||
        matcher_.is_output(image)) {
      return false;
    }
    const BufferId buffer = matcher_.view(image).buffer;
    for (const int64_t reader : matcher_.readers_of(image)) {
      for (const Operand& operand : matcher_.node(reader).arguments) {
        for (const ViewId view : operand.views) {
          if (view != kNone && view != image && matcher_.view(view).buffer == buffer) return false;
        }
      }
    }
    return true;
  }

  ViewId channels_last(ViewId image) const {
    const std::vector<int64_t> sizes = matcher_.view(image).sizes;
    View made = matcher_.view(matcher_.fresh(sizes, matcher_.view(image).dtype, image));
    made.strides = {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]};
    return matcher_.intern(made);
  }

  // Whether the node has other images, all of them channels_last.
  bool has_images_in_channels_last(int64_t reader) const {
    bool has_any = false;
    for (const Operand& operand : matcher_.node(reader).arguments) {
      for (const ViewId view : operand.views) {
        if (view == kNone || moved_.count(view) != 0 || !is_image(matcher_.view(view))) continue;
        if (!is_channels_last(matcher_, view)) return false;
        has_any = true;
      }
    }
    return has_any;
  }

  // Adds to `open` those results that become channels_last as well.
  bool follow(int64_t reader, std::vector<ViewId>& open) const {
    if (!has_images_in_channels_last(reader)) return false;
    // Their results have the format of x.
    if (matcher_.is_one_of(reader,
                           {"aten::native_batch_norm_backward", "aten::convolution_backward"})) {
      return true;
    }
    Node node = matcher_.node(reader);
    for (Operand& operand : node.arguments) {
      for (ViewId& view : operand.views) view = now(view);
    }
    const auto layouts = result_layouts(matcher_.graph(), node);
    if (layouts.size() != node.results.size()) return false;
    for (size_t i = 0; i < layouts.size(); ++i) {
      const ViewId made = matcher_.result(reader, i);
      if (made == kNone || is_laid_out_alike(layouts[i], matcher_.view(made))) continue;
      if (!is_image(matcher_.view(made)) ||
          !is_laid_out_alike(layouts[i], matcher_.view(channels_last(made)))) {
        return false;
      }
      open.push_back(made);
    }
    return true;
  }

  Matcher& matcher_;
  std::map<ViewId, ViewId> moved_;
};

// Replaces dy.expand(sizes) / pixels.
std::optional<Rewrite> mean_gradient(Matcher& matcher, int64_t index) {
  const ViewId expanded = matcher.argument(index, 0), dx = matcher.result(index);
  if (expanded == kNone || !matcher.constant(index, 1).isScalar()) return std::nullopt;
  View dy = matcher.view(expanded);
  if (!is_image(dy) || dy.sizes[2] * dy.sizes[3] < 2 || dy.strides[2] != 0 || dy.strides[3] != 0 ||
      !is_contiguous(matcher.view(dx))) {
    return std::nullopt;
  }
  const std::vector<int64_t> sizes = dy.sizes;
  const double pixels = static_cast<double>(sizes[2] * sizes[3]);
  dy.sizes.resize(2);
  dy.strides.resize(2);
  if (matcher.constant(index, 1).toScalar().toDouble() != pixels || !is_contiguous(dy)) {
    return std::nullopt;
  }
  Reformatted images(matcher);
  if (!images.add(dx) || !kernel::takes_global_avg_pool(matcher.stand_in(images.now(dx)))) {
    return std::nullopt;
  }
  const ViewId row = matcher.intern(dy);
  images.apply();
  return Rewrite{.removed = {index}, .added = {{index, gradient_node(row, sizes, images.now(dx))}}};
}

std::optional<Rewrite> match(Matcher& matcher, int64_t index) {
  if (matcher.is_one_of(index, {"aten::mean.dim", "aten::avg_pool2d"})) {
    return forward(matcher, index);
  }
  if (matcher.is(index, "aten::avg_pool2d_backward")) return pool_gradient(matcher, index);
  if (matcher.is(index, "aten::div.Scalar")) return mean_gradient(matcher, index);
  return std::nullopt;
}

}  // namespace

void pooling(Graph& graph) { rewrite_all(graph, match); }

}  // namespace gallop::compile::passes

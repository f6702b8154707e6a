#include "gallop/kernel/conv2d.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/conv2d.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

// A weight of the window and how far away the neighbor is that it multiplies.
struct Tap {
  int64_t row, column;  // Position of the neighbor, from the pixel that the result's one begins at.
  int64_t y, x;         // In the window.
};

// Pixels of the result that lie in one place within the stride, which the same taps make.
struct Place {
  int64_t row = 0, column = 0;
  std::vector<Tap> taps{};  // By rows, and there by columns.
};

// From [height, width, inner] to [to_height, to_width, outer] for each image. From one result to
// the next of its place, `stride` pixels of the one and `to_stride` of the other are passed.
struct Shape {
  int64_t images, height, width, inner;
  int64_t to_height, to_width, outer;
  int64_t stride, to_stride;

  int64_t rows(const Place& p) const { return (to_height - p.row + to_stride - 1) / to_stride; }
  int64_t columns(const Place& p) const {
    return (to_width - p.column + to_stride - 1) / to_stride;
  }
};

class Convolution {
 public:
  // weight(outer, inner, y, x) is what they are made of.
  template <typename Weight>
  Convolution(const Shape& shape, std::vector<Place> places, const Weight& weight)
      : s_(shape), places_(std::move(places)) {
    for (const Place& p : places_) {
      for (const Tap& tap : p.taps) {
        top_ = std::max(top_, -tap.row);
        left_ = std::max(left_, -tap.column);
        bottom_ = std::max(bottom_, (s_.rows(p) - 1) * s_.stride + tap.row + 1 - s_.height);
        right_ = std::max(right_, (s_.columns(p) - 1) * s_.stride + tap.column + 1 - s_.width);
      }
    }
    for (const Place& p : places_) add_steps(p);
    weights_.resize(static_cast<size_t>(s_.outer / kLanes * block_size_));
    for (int64_t first = 0; first < s_.outer; first += kLanes) {
      Bf16* to = weights_.data() + first / kLanes * block_size_;
      for (const Source& source : sources_) to = lay_out(source, first, weight, to);
    }
  }

  // `bias` has `outer` numbers.
  void run(Isa isa, const Bf16* from, const float* bias, Bf16* to) const {
    const auto kernels = kernels_for<Conv2dKernels>(isa);
    at::parallel_for(0, s_.images, 1, [&](int64_t begin, int64_t end) {
      alignas(64) char state[Conv2dKernels::kStateBytes] = {};
      kernels.begin(state);
      const int64_t size = (top_ + s_.height + bottom_) * pitch() * s_.inner;
      Scratch scratch(Scratch::bytes_of<Bf16>(size));
      Bf16* const image = scratch.take<Bf16>(size);
      std::memset(static_cast<void*>(image), 0, static_cast<size_t>(size) * sizeof(Bf16));
      for (int64_t i = begin; i < end; ++i) {
        const Bf16* const source = from + i * s_.height * s_.width * s_.inner;
        copy(source, image);
        for (size_t p = 0; p < places_.size(); ++p) {
          run_position(kernels, p, image, bias, to + i * s_.to_height * s_.to_width * s_.outer);
        }
      }
      kernels.end(state);
    });
  }

 private:
  // What a step multiplies by: numbers of one tap from `first` on, or of two taps.
  struct Source {
    Tap tap, second;
    int64_t first, numbers;
  };
  struct Steps {
    std::vector<Conv2dStep> all{};
    int64_t full = 0, half = 0;
  };

  int64_t pitch() const { return left_ + s_.width + right_; }

  // Full steps, then half ones. Two taps of 16 channels side by side are a full one.
  void add_steps(const Place& place) {
    Steps steps;
    std::vector<Source> half;
    const auto add = [&](const Source& source) {
      const Tap& tap = source.tap;
      steps.all.push_back(
          {((tap.row + top_) * pitch() + tap.column + left_) * s_.inner + source.first,
           block_size_});
      sources_.push_back(source);
      block_size_ += source.numbers * kLanes;
    };
    for (size_t i = 0; i < place.taps.size(); ++i) {
      const Tap& tap = place.taps[i];
      int64_t c = 0;
      for (; c + Conv2dKernels::kInner <= s_.inner; c += Conv2dKernels::kInner) {
        add({tap, tap, c, Conv2dKernels::kInner});
      }
      if (c == s_.inner) continue;
      const bool two = s_.inner == Conv2dKernels::kHalf && i + 1 < place.taps.size() &&
                       place.taps[i + 1].row == tap.row &&
                       place.taps[i + 1].column == tap.column + 1;
      if (two) {
        add({tap, place.taps[++i], 0, Conv2dKernels::kInner});
      } else {
        half.push_back({tap, tap, c, Conv2dKernels::kHalf});
      }
    }
    steps.full = static_cast<int64_t>(steps.all.size());
    steps.half = static_cast<int64_t>(half.size());
    for (const Source& source : half) add(source);
    steps_.push_back(std::move(steps));
  }

  // Numbers 2i and 2i + 1 interleaved, for 16 channels of the result.
  template <typename Weight>
  Bf16* lay_out(const Source& source, int64_t first, const Weight& weight, Bf16* to) const {
    for (int64_t k = 0; k < source.numbers; k += 2) {
      for (int64_t n = 0; n < kLanes; ++n) {
        for (int64_t i = k; i < k + 2; ++i) {
          const bool in_second = source.first + i >= s_.inner;
          const Tap& tap = in_second ? source.second : source.tap;
          *to++ = weight(first + n, source.first + i - (in_second ? s_.inner : 0), tap.y, tap.x);
        }
      }
    }
    return to;
  }

  void copy(const Bf16* from, Bf16* image) const {
    const int64_t size = s_.width * s_.inner;
    for (int64_t y = 0; y < s_.height; ++y) {
      std::memcpy(static_cast<void*>(image + ((top_ + y) * pitch() + left_) * s_.inner),
                  from + y * size, static_cast<size_t>(size) * sizeof(Bf16));
      // The next image's row: it is in the second cache when its turn comes.
      constexpr int64_t kLine = 32;
      for (int64_t i = 0; i < size; i += kLine) {
        __builtin_prefetch(from + (s_.height + y) * size + i, 0, 2);
      }
    }
  }

  // Tiles of 16 pixels of a row, of which the last may overlap with the one before, and the last
  // of all may come several times: the numbers are the same.
  void run_position(const Conv2dKernels& kernels, size_t p, const Bf16* image, const float* bias,
                    Bf16* to) const {
    const Place& place = places_[p];
    const int64_t columns = s_.columns(place);
    const int64_t in_row = (columns + Conv2dBlock::kPixels - 1) / Conv2dBlock::kPixels;
    const int64_t tiles = s_.rows(place) * in_row;
    Conv2dBlock block{.from_stride = s_.stride * s_.inner, .to_stride = s_.to_stride * s_.outer};
    for (int64_t tile = 0; tile < tiles; tile += Conv2dBlock::kTiles) {
      for (int64_t i = 0; i < Conv2dBlock::kTiles; ++i) {
        const int64_t at = std::min(tile + i, tiles - 1), y = at / in_row;
        const int64_t x =
            std::min(at % in_row * Conv2dBlock::kPixels, columns - Conv2dBlock::kPixels);
        block.from[i] = image + (y * pitch() + x) * s_.stride * s_.inner;
        block.to[i] =
            to + ((y * s_.to_stride + place.row) * s_.to_width + x * s_.to_stride + place.column) *
                     s_.outer;
      }
      const Steps& steps = steps_[p];
      for (int64_t c = 0; c < s_.outer; c += kLanes) {
        kernels.run(block, steps.all.data(), steps.full, steps.half,
                    weights_.data() + c / kLanes * block_size_, bias + c);
        for (Bf16*& pixels : block.to) pixels += kLanes;
      }
    }
  }

  Shape s_;
  std::vector<Place> places_;
  int64_t top_ = 0, left_ = 0, bottom_ = 0, right_ = 0;  // Zeros around an image.
  std::vector<Source> sources_;
  std::vector<Steps> steps_;  // Steps of each place.
  std::vector<Bf16> weights_;
  int64_t block_size_ = 0;  // Size of the weights for 16 channels.
};

bool is_image_batch(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.dim() == 4 && tensor.numel() > 0 &&
         tensor.scalar_type() == at::kBFloat16 && tensor.size(1) % kLanes == 0 &&
         tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
}

bool fits_weight(const at::Tensor& weight, const Conv2dWindow& window) {
  return weight.defined() && weight.is_cpu() && weight.dim() == 4 &&
         weight.scalar_type() == at::kBFloat16 && weight.size(0) > 0 &&
         weight.size(0) % kLanes == 0 && weight.size(1) % kLanes == 0 &&
         weight.size(2) == window.height && weight.size(3) == window.width && window.stride > 0 &&
         window.padding >= 0;
}

int64_t result_size(int64_t size, int64_t window, const Conv2dWindow& w) {
  return size + 2 * w.padding < window ? 0 : (size + 2 * w.padding - window) / w.stride + 1;
}

bool fits(const at::Tensor& x, const at::Tensor& weight, const Conv2dWindow& window) {
  return is_image_batch(x) && fits_weight(weight, window) && x.size(1) == weight.size(1) &&
         result_size(x.size(2), window.height, window) > 0 &&
         result_size(x.size(3), window.width, window) >= Conv2dBlock::kPixels;
}

bool fits_data(const at::Tensor& dy, const at::Tensor& weight, int64_t height, int64_t width,
               const Conv2dWindow& window) {
  return is_image_batch(dy) && fits_weight(weight, window) && dy.size(1) == weight.size(0) &&
         height >= window.stride && width / window.stride >= Conv2dBlock::kPixels &&
         dy.size(2) == result_size(height, window.height, window) &&
         dy.size(3) == result_size(width, window.width, window);
}

// Reads a weight [out, in, y, x] of any strides.
auto reader_of(const at::Tensor& weight) {
  return [data = data_of<const Bf16>(weight), strides = weight.strides().vec()](
             int64_t out, int64_t in, int64_t y, int64_t x) {
    return data[out * strides[0] + in * strides[1] + y * strides[2] + x * strides[3]];
  };
}

// Numbers whose addition changes no bit.
std::vector<float> no_bias(int64_t channels) {
  return std::vector<float>(static_cast<size_t>(channels), -0.0F);
}

at::Tensor images_of(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().memory_format(at::MemoryFormat::ChannelsLast));
}

// dx[r * stride + place] is made of dy's rows r + offset - i by the window's rows first + i *
// stride; returns pairs of these, by dy's rows.
std::vector<std::pair<int64_t, int64_t>> taps_along(int64_t place, int64_t size,
                                                    const Conv2dWindow& window) {
  const int64_t first = (place + window.padding) % window.stride;
  std::vector<std::pair<int64_t, int64_t>> taps;
  for (int64_t i = first; i < size; i += window.stride) {
    taps.emplace_back((place + window.padding - i) / window.stride, i);
  }
  std::reverse(taps.begin(), taps.end());
  return taps;
}

}  // namespace

at::Tensor conv2d_by(Isa isa, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const Conv2dWindow& window) {
  if (!fits(x, weight, window) || (bias.defined() && bias.numel() != weight.size(0))) {
    throw InternalError("conv2d: unsupported tensors");
  }
  Place place;
  for (int64_t y = 0; y < window.height; ++y) {
    for (int64_t i = 0; i < window.width; ++i) {
      place.taps.push_back({y - window.padding, i - window.padding, y, i});
    }
  }
  const Shape shape{.images = x.size(0),
                    .height = x.size(2),
                    .width = x.size(3),
                    .inner = x.size(1),
                    .to_height = result_size(x.size(2), window.height, window),
                    .to_width = result_size(x.size(3), window.width, window),
                    .outer = weight.size(0),
                    .stride = window.stride,
                    .to_stride = 1};
  at::Tensor y = images_of({shape.images, shape.outer, shape.to_height, shape.to_width}, x);
  const Fp32Row row(bias);
  const std::vector<float> none = bias.defined() ? std::vector<float>() : no_bias(shape.outer);
  Convolution(shape, {place}, reader_of(weight))
      .run(isa, data_of<const Bf16>(x), bias.defined() ? row.data() : none.data(),
           data_of<Bf16>(y));
  return y;
}

at::Tensor conv2d_dgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                           int64_t width, const Conv2dWindow& window) {
  if (!fits_data(dy, weight, height, width, window)) {
    throw InternalError("conv2d_dgrad: unsupported tensors");
  }
  std::vector<Place> places;
  for (int64_t row = 0; row < window.stride; ++row) {
    for (int64_t column = 0; column < window.stride; ++column) {
      Place place{.row = row, .column = column};
      for (const auto& [r, y] : taps_along(row, window.height, window)) {
        for (const auto& [c, x] : taps_along(column, window.width, window)) {
          place.taps.push_back({r, c, y, x});
        }
      }
      places.push_back(std::move(place));
    }
  }
  const Shape shape{.images = dy.size(0),
                    .height = dy.size(2),
                    .width = dy.size(3),
                    .inner = dy.size(1),
                    .to_height = height,
                    .to_width = width,
                    .outer = weight.size(1),
                    .stride = 1,
                    .to_stride = window.stride};
  at::Tensor dx = images_of({shape.images, shape.outer, height, width}, dy);
  const auto read = reader_of(weight);
  const auto rotated = [&](int64_t outer, int64_t inner, int64_t y, int64_t x) {
    return read(inner, outer, y, x);
  };
  Convolution(shape, std::move(places), rotated)
      .run(isa, data_of<const Bf16>(dy), no_bias(shape.outer).data(), data_of<Bf16>(dx));
  return dx;
}

namespace {

// With more channels, LibTorch's convolutions are as fast.
bool is_narrow(const at::Tensor& weight) { return weight.size(0) <= 32 && weight.size(1) <= 32; }

Conv2dWindow window_of(const at::Tensor& weight, int64_t stride, int64_t padding) {
  return {.height = weight.size(2), .width = weight.size(3), .stride = stride, .padding = padding};
}

at::Tensor on_cpu(const at::Tensor& x, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias, int64_t stride, int64_t padding) {
  return conv2d_by(best_isa(), x, weight, bias.value_or(at::Tensor()),
                   window_of(weight, stride, padding));
}

at::Tensor data_on_cpu(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                       int64_t width, int64_t stride, int64_t padding) {
  return conv2d_dgrad_by(best_isa(), dy, weight, height, width, window_of(weight, stride, padding));
}

}  // namespace

bool takes_conv2d(const at::Tensor& x, const at::Tensor& weight, const Conv2dWindow& window) {
  const bool is_point = window.height == 1 && window.width == 1;  // LibTorch's are as fast.
  return best_isa() >= Isa::kAmx && fits(x, weight, window) && is_narrow(weight) && !is_point;
}

bool takes_conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                        int64_t width, const Conv2dWindow& window) {
  // Without AMX tiles LibTorch's are as fast, except with a stride.
  const Isa needed = window.stride > 1 ? Isa::kAvx512Bf16 : Isa::kAmx;
  return best_isa() >= needed && fits_data(dy, weight, height, width, window) && is_narrow(weight);
}

namespace {

const auto& forward_operator() {
  static const Operator kForward(
      "conv2d(Tensor x, Tensor weight, Tensor? bias, int stride, int padding) -> Tensor", on_cpu);
  return kForward;
}

const auto& data_operator() {
  static const Operator kData(
      "conv2d_dgrad(Tensor dy, Tensor weight, int height, int width, int stride, int padding) -> "
      "Tensor",
      data_on_cpu);
  return kData;
}

}  // namespace

c10::OperatorHandle conv2d_operator() { return forward_operator().handle(); }
c10::OperatorHandle conv2d_dgrad_operator() { return data_operator().handle(); }

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Conv2dWindow& window) {
  return forward_operator()(x, weight, optional(bias), window.stride, window.padding);
}

at::Tensor conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                        int64_t width, const Conv2dWindow& window) {
  return data_operator()(dy, weight, height, width, window.stride, window.padding);
}

}  // namespace gallop::kernel

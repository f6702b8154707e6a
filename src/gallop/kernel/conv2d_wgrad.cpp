#include "gallop/kernel/conv2d_wgrad.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/column_sums.h"
#include "gallop/kernel/cpu/weight_gradient.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/gemm.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/operators.h"

namespace gallop::kernel {

namespace {

struct Shape {
  int64_t images, height, width, channels;  // Shape of x.
  int64_t out_height, out_width, out;       // Shape of dy.
  int64_t window_height, window_width, stride, padding;

  Shape(const at::Tensor& x, int64_t out_channels, const Conv2dWindow& window)
      : images(x.size(0)),
        height(x.size(2)),
        width(x.size(3)),
        channels(x.size(1)),
        out_height((height + 2 * window.padding - window.height) / window.stride + 1),
        out_width((width + 2 * window.padding - window.width) / window.stride + 1),
        out(out_channels),
        window_height(window.height),
        window_width(window.width),
        stride(window.stride),
        padding(window.padding) {}

  bool is_narrow() const { return channels <= 64; }
  // An inner size of products, in pixels, that keeps both sides in the core's cache.
  int64_t wanted_pixels() const { return is_narrow() ? 1024 : 512; }
  // If there are few channels, those of a window's whole row, which lie side by side, are one
  // matrix.
  bool joins_columns() const { return channels <= 32; }
  int64_t columns() const { return joins_columns() ? 1 : window_width; }  // Matrices a row.
  int64_t run() const { return joins_columns() ? window_width * channels : channels; }
  int64_t padded_run() const { return up_to(run(), 16); }
  int64_t sums() const { return window_height * columns() * out * padded_run(); }

  // Images and rows of each that are taken at a time: pixels are in order (row, image, column), so
  // that the window's rows are offsets within one matrix.
  int64_t images_at_once() const {
    return std::clamp<int64_t>(wanted_pixels() / (out_height * out_width), 1, images);
  }
  int64_t rows_at_once() const {
    return std::clamp<int64_t>(wanted_pixels() / (images_at_once() * out_width), 1, out_height);
  }
  int64_t groups() const { return parts_of(images, images_at_once()); }
  // Parts of the batch with sums of their own, so many that they stay small.
  int64_t blocks() const {
    constexpr int64_t kBytes = int64_t{32} << 20, kMost = 16;
    return std::min(groups(), std::clamp<int64_t>(kBytes / (4 * sums()), 2, kMost));
  }
};

// Numbers of bf16 in a row of a tile: pixels that products take at a time.
constexpr int64_t kStep = 32;

// The work of one thread. Both sides lie in panels, which products read from the first cache, and
// only some steps of pixels are laid out before they are multiplied.
class Worker {
 public:
  Worker(Isa isa, const Shape& shape, const Bf16* dy, const Bf16* x)
      : s_(shape),
        dy_(dy),
        x_(x),
        kernels_(kernels_for<WeightGradientKernels>(isa)),
        products_(isa),
        panel_(!s_.is_narrow()    ? s_.padded_run()
               : s_.out == kLanes ? 4 * kLanes
                                  : 2 * kLanes),
        transposed_size_(kStepsAtOnce * kStep * s_.out),
        interleaved_size_(
            up_to((s_.rows_at_once() + parts_of(s_.window_height, s_.stride) - 1) * row_pixels() +
                      kStep,
                  kStep) *
            s_.padded_run()),
        row_size_(up_to((s_.width + 2 * s_.padding) * s_.channels + s_.padded_run(), kStep)),
        matrices_(std::min(s_.stride, s_.window_height) * s_.columns()),
        scratch_(Scratch::bytes_of<Bf16>(transposed_size_) + Scratch::bytes_of<Bf16>(row_size_) +
                 Scratch::bytes_of<Bf16>(matrices_ * interleaved_size_) +
                 Scratch::bytes_of<Bf16>(2 * s_.out)),
        transposed_(scratch_.take<Bf16>(transposed_size_)),
        row_(scratch_.take<Bf16>(row_size_)),
        interleaved_(scratch_.take<Bf16>(matrices_ * interleaved_size_)),
        nothing_(scratch_.take<Bf16>(2 * s_.out)) {
    clear(row_, row_size_);
    clear(nothing_, 2 * s_.out);
  }

  /// Adds up groups [begin, end) of images.
  void run(int64_t begin, int64_t end, float* sums) {
    std::fill_n(sums, s_.sums(), 0.0F);
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t row = 0; row < s_.out_height; row += s_.rows_at_once()) {
        add(group * s_.images_at_once(), row, sums);
      }
    }
  }

 private:
  // Steps that are laid out and then multiplied.
  static constexpr int64_t kStepsAtOnce = 16;

  int64_t row_pixels() const { return s_.images_at_once() * s_.out_width; }
  static void clear(Bf16* at, int64_t count) {
    std::memset(static_cast<void*>(at), 0, static_cast<size_t>(count) * sizeof(Bf16));
  }
  static void prefetch(const Bf16* at, int64_t count) {
    constexpr int64_t kLine = 32;
    for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(at + i, 0, 2);
  }
  Bf16* interleaved(int64_t phase, int64_t column) {
    return interleaved_ + (phase * s_.columns() + column) * interleaved_size_;
  }
  int64_t phases() const { return std::min(s_.stride, s_.window_height); }

  void add(int64_t image, int64_t row, float* sums) {
    const int64_t rows = std::min(s_.rows_at_once(), s_.out_height - row);
    const int64_t steps = parts_of(rows * row_pixels(), kStep);
    place_ = {.image = image, .row = row, .rows = rows, .dy = dy_row(image, row)};
    const bool by_rows = s_.rows_at_once() < s_.out_height;
    dy_ahead_ = (by_rows ? rows : s_.images_at_once() * s_.out_height) * s_.out_width * s_.out;
    x_ahead_ =
        (by_rows ? rows * s_.stride : s_.images_at_once() * s_.height) * s_.width * s_.channels;
    int64_t laid_out = 0;
    for (int64_t step = 0; step < steps; step += kStepsAtOnce) {
      const int64_t count = std::min(kStepsAtOnce, steps - step);
      const int64_t needed = std::min(rows, parts_of((step + count) * kStep, row_pixels()));
      for (int64_t phase = 0; phase < phases(); ++phase) {
        const int64_t more = parts_of(s_.window_height - phase, s_.stride) - 1;
        for (int64_t r = laid_out == 0 ? 0 : laid_out + more; r < needed + more; ++r) {
          interleave(phase, r);
        }
        if (needed == rows && rows * row_pixels() % kStep != 0) clear_behind(phase, rows + more);
      }
      laid_out = needed;
      turn(count);
      multiply(step, count, sums);
    }
  }

  // dy's pixels as columns in panels of at most 32 rows, and zeros for images that are not there.
  void turn(int64_t count) {
    const Bf16* pairs[kLanes];
    const int64_t fetched = s_.is_narrow() ? 2 * s_.out : 0;
    for (int64_t i = 0; i < count; ++i) {
      for (const Bf16*& pair : pairs) {
        pair = next_pair();
        prefetch(pair + dy_ahead_, fetched);
      }
      for (int64_t first = 0; first < s_.out; first += 2 * kLanes) {
        const int64_t channels = std::min(2 * kLanes, s_.out - first);
        kernels_.turn_pairs(pairs, s_.out, first, channels,
                            transposed_ + (first * count + i * channels) * kStep);
      }
    }
  }

  // The next two pixels of dy in the order (row, image, column).
  const Bf16* next_pair() {
    Place& p = place_;
    if (p.transposed_row == p.rows) return nothing_;
    const Bf16* const pair =
        p.image + p.transposed_image < s_.images ? p.dy + p.transposed_column * s_.out : nothing_;
    p.transposed_column += 2;
    if (p.transposed_column < s_.out_width) return pair;
    p.transposed_column = 0;
    if (++p.transposed_image == s_.images_at_once()) {
      p.transposed_image = 0;
      ++p.transposed_row;
    }
    p.dy = dy_row(p.image + p.transposed_image, p.row + p.transposed_row);
    return pair;
  }

  const Bf16* dy_row(int64_t image, int64_t row) const {
    return dy_ + (image * s_.out_height + row) * s_.out_width * s_.out;
  }

  // The r-th row of x of a phase, for each image: rows that a window's rows begin in take turns
  // where the stride passes some over.
  void interleave(int64_t phase, int64_t r) {
    const int64_t y = (place_.row + r) * s_.stride + phase - s_.padding;
    for (int64_t i = 0; i < s_.images_at_once(); ++i) {
      const int64_t image = place_.image + i, pixel = r * row_pixels() + i * s_.out_width;
      const bool there = y >= 0 && y < s_.height && image < s_.images;
      if (there) {
        const int64_t size = s_.width * s_.channels;
        const Bf16* const from = x_ + (image * s_.height + y) * size;
        std::memcpy(static_cast<void*>(row_ + s_.padding * s_.channels), from,
                    static_cast<size_t>(size) * sizeof(Bf16));
        if (s_.is_narrow()) prefetch(from + x_ahead_, size);
      }
      for (int64_t column = 0; column < s_.columns(); ++column) {
        for (int64_t first = 0; first < s_.padded_run(); first += panel_) {
          const int64_t width = std::min(panel_, s_.padded_run() - first);
          Bf16* const to = panel_of(phase, column, first) + pixel * width;
          if (there) {
            kernels_.interleave(row_ + column * s_.channels + first, s_.stride * s_.channels,
                                s_.out_width, width, to);
          } else {
            clear(to, s_.out_width * width);
          }
        }
      }
    }
  }

  // Pixels that fill the last step: dy is 0 there, and these must be numbers.
  void clear_behind(int64_t phase, int64_t rows) {
    for (int64_t column = 0; column < s_.columns(); ++column) {
      for (int64_t first = 0; first < s_.padded_run(); first += panel_) {
        const int64_t width = std::min(panel_, s_.padded_run() - first);
        clear(panel_of(phase, column, first) + rows * row_pixels() * width, kStep * width);
      }
    }
  }

  Bf16* panel_of(int64_t phase, int64_t column, int64_t first) {
    return interleaved(phase, column) + first * (interleaved_size_ / s_.padded_run());
  }

  void multiply(int64_t step, int64_t count, float* sums) {
    const int64_t width = s_.padded_run();
    for (int64_t y = 0; y < s_.window_height; ++y) {
      const int64_t pixel = step * kStep + y / s_.stride * row_pixels();
      for (int64_t column = 0; column < s_.columns(); ++column) {
        float* const to = sums + (y * s_.columns() + column) * s_.out * width;
        for (int64_t i = 0; i < s_.out; i += 2 * kLanes) {
          const int64_t rows = std::min(2 * kLanes, s_.out - i);
          for (int64_t j = 0; j < width; j += panel_) {
            const int64_t columns = std::min(panel_, width - j);
            products_.multiply_blocks(rows, columns, count * kStep, transposed_ + i * count * kStep,
                                      panel_of(y % s_.stride, column, j) + pixel * columns, columns,
                                      to + i * width + j, width);
          }
        }
      }
    }
  }

  // Where the pixels are from that are at hand.
  struct Place {
    int64_t image, row, rows;
    const Bf16* dy;  // The row that is being transposed.
    int64_t transposed_row, transposed_image, transposed_column;
  };

  const Shape& s_;
  const Bf16 *dy_, *x_;
  WeightGradientKernels kernels_;
  Gemm<Bf16> products_;
  int64_t panel_, transposed_size_, interleaved_size_, row_size_, matrices_;
  Scratch scratch_;
  Bf16 *transposed_, *row_, *interleaved_, *nothing_;
  Place place_{};
  // To what is taken next, and is fetched into the second cache unless channels fill that.
  int64_t dy_ahead_ = 0, x_ahead_ = 0;
};

bool is_image_batch(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.dim() == 4 && tensor.numel() > 0 &&
         tensor.scalar_type() == at::kBFloat16 &&
         tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
}

bool fits(const at::Tensor& x, int64_t out, const Conv2dWindow& window) {
  if (!is_image_batch(x) || window.height < 1 || window.width < 1 || window.stride < 1 ||
      window.padding < 0 || x.size(2) + 2 * window.padding < window.height ||
      x.size(3) + 2 * window.padding < window.width) {
    return false;
  }
  return out > 0 && out % 16 == 0 && Shape(x, out, window).out_width % 2 == 0;
}

at::Tensor on_cpu(const at::Tensor& dy, const at::Tensor& x, int64_t height, int64_t width,
                  int64_t stride, int64_t padding) {
  return conv2d_wgrad_by(best_isa(), dy, x,
                         {.height = height, .width = width, .stride = stride, .padding = padding});
}

}  // namespace

bool takes_conv2d_wgrad(const at::Tensor& x, int64_t out, const Conv2dWindow& window) {
  return best_isa() >= Isa::kAvx512Bf16 && fits(x, out, window);
}

bool prefers_conv2d_wgrad(const at::Tensor& x, int64_t out, const Conv2dWindow& window) {
  if (!takes_conv2d_wgrad(x, out, window)) return false;
  if (best_isa() >= Isa::kAmx) return true;
  // Measured by `bench_kernels conv2d-wgrad` on a Zen 4: 1.0 to 2.1 times as fast within these
  // limits, 0.5 to 1.0 times beyond.
  constexpr int64_t kLeastChannels = 8, kMostWeights = 1 << 17, kMostWeightsPerPixel = 40;
  const Shape s(x, out, window);
  const int64_t weights = out * s.channels * s.window_height * s.window_width;
  const int64_t pixels = s.images * s.out_height * s.out_width;
  return s.channels >= kLeastChannels && weights <= kMostWeights &&
         weights <= kMostWeightsPerPixel * pixels;
}

at::Tensor conv2d_wgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& x,
                           const Conv2dWindow& window) {
  if (!is_image_batch(dy) || !fits(x, dy.size(1), window)) {
    throw InternalError("conv2d_wgrad: unsupported tensors");
  }
  const Shape s(x, dy.size(1), window);
  if (dy.size(0) != s.images || dy.size(2) != s.out_height || dy.size(3) != s.out_width) {
    throw InternalError("conv2d_wgrad: dy does not have the convolution's sizes");
  }
  const int64_t blocks = s.blocks(), size = s.sums();
  Scratch memory(Scratch::bytes_of<float>(blocks * size));
  auto* const sums = memory.take<float>(blocks * size);
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    Worker worker(isa, s, data_of<const Bf16>(dy), data_of<const Bf16>(x));
    for (int64_t block = begin; block < end; ++block) {
      worker.run(block * s.groups() / blocks, (block + 1) * s.groups() / blocks,
                 sums + block * size);
    }
  });

  at::Tensor weight =
      at::empty({s.out, s.channels, s.window_height, s.window_width},
                x.options().dtype(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  auto* const to = weight.mutable_data_ptr<float>();
  const auto kernels = kernels_for<ColumnSumsKernels>(isa);
  const int64_t matrices = s.window_height * s.columns();
  at::parallel_for(0, s.out, std::max<int64_t>(65536 / (blocks * matrices * s.run()), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       for (int64_t matrix = 0; matrix < matrices; ++matrix) {
                         kernels.add(sums + (matrix * s.out + i) * s.padded_run(), blocks, size,
                                     s.run(), to + (i * matrices + matrix) * s.run());
                       }
                     }
                   });
  return weight;
}

namespace {

const auto& wgrad_operator() {
  static const Operator kOperator(
      "conv2d_wgrad(Tensor dy, Tensor x, int height, int width, int stride, int padding) -> "
      "Tensor",
      on_cpu);
  return kOperator;
}

}  // namespace

c10::OperatorHandle conv2d_wgrad_operator() { return wgrad_operator().handle(); }

at::Tensor conv2d_wgrad(const at::Tensor& dy, const at::Tensor& x, const Conv2dWindow& window) {
  return wgrad_operator()(dy, x, window.height, window.width, window.stride, window.padding);
}

}  // namespace gallop::kernel

#include "gallop/kernel/conv2d_weight.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/column_sums.h"
#include "gallop/kernel/cpu/weight_gradient.h"
#include "gallop/kernel/cpu_tensor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/products.h"

namespace gallop::kernel {

namespace {

int64_t parts_of(int64_t size, int64_t part) { return (size + part - 1) / part; }
int64_t up_to(int64_t size, int64_t step) { return parts_of(size, step) * step; }

// An inner size of products, in pixels, that keeps both sides in the core's cache.
int64_t wanted_pixels(int64_t channels) { return channels <= 64 ? 1024 : 512; }

struct Shape {
  int64_t images, height, width, channels;  // Of x.
  int64_t out_height, out_width, out;       // Of dy.
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

  // Of few channels, those of a window's whole row, which lie side by side, are one matrix.
  bool joins_columns() const { return channels <= 32; }
  int64_t columns() const { return joins_columns() ? 1 : window_width; }  // Matrices a row.
  int64_t run() const { return joins_columns() ? window_width * channels : channels; }
  int64_t padded_run() const { return up_to(run(), 16); }
  int64_t sums() const { return window_height * columns() * out * padded_run(); }

  // Images and rows of each that are taken at a time: pixels are in order (row, image, column), so
  // that the window's rows are offsets within one matrix.
  int64_t images_at_once() const {
    return std::clamp<int64_t>(wanted_pixels(channels) / (out_height * out_width), 1, images);
  }
  int64_t rows_at_once() const {
    return std::clamp<int64_t>(wanted_pixels(channels) / (images_at_once() * out_width), 1,
                               out_height);
  }
  int64_t groups() const { return parts_of(images, images_at_once()); }
  // Parts of the batch with sums of their own, so many that they stay small.
  int64_t blocks() const {
    constexpr int64_t kBytes = int64_t{32} << 20, kMost = 16;
    return std::min(groups(), std::clamp<int64_t>(kBytes / (4 * sums()), 2, kMost));
  }
};

// The work of one thread.
class Worker {
 public:
  Worker(Isa isa, const Shape& shape, const Bf16* dy, const Bf16* x)
      : s_(shape),
        dy_(dy),
        x_(x),
        bodies_(bodies_of<WeightGradientBodies>(isa)),
        products_(isa),
        pixels_(up_to(s_.images_at_once() * s_.rows_at_once() * s_.out_width, 32)),
        row_size_(up_to((s_.width + 2 * s_.padding) * s_.channels + s_.padded_run(), 32)),
        woven_size_((pixels_ + (parts_of(s_.window_height, s_.stride) - 1) * row_pixels()) *
                    s_.padded_run()),
        scratch_(Scratch::bytes_of<Bf16>(pixels_ * s_.out) * 2 +
                 Scratch::bytes_of<Bf16>(row_size_) + Scratch::bytes_of<Bf16>(woven_size_)),
        copied_(scratch_.take<Bf16>(pixels_ * s_.out)),
        turned_(scratch_.take<Bf16>(pixels_ * s_.out)),
        row_(scratch_.take<Bf16>(row_size_)),
        woven_(scratch_.take<Bf16>(woven_size_)) {
    clear(row_, row_size_);
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
  int64_t row_pixels() const { return s_.images_at_once() * s_.out_width; }
  static void clear(Bf16* at, int64_t count) {
    std::memset(static_cast<void*>(at), 0, static_cast<size_t>(count) * sizeof(Bf16));
  }

  void add(int64_t image, int64_t row, float* sums) {
    const int64_t rows = std::min(s_.rows_at_once(), s_.out_height - row);
    const int64_t pixels = up_to(rows * row_pixels(), 32), width = s_.padded_run();
    turn(image, row, rows, pixels);
    for (int64_t column = 0; column < s_.columns(); ++column) {
      // Rows of x that a window's rows begin in take turns where the stride passes some over.
      for (int64_t phase = 0; phase < std::min(s_.stride, s_.window_height); ++phase) {
        const int64_t window_rows = parts_of(s_.window_height - phase, s_.stride);
        weave(image, row * s_.stride + phase, rows + window_rows - 1, column);
        for (int64_t i = 0; i < window_rows; ++i) {
          const int64_t matrix = (phase + i * s_.stride) * s_.columns() + column;
          products_.multiply(s_.out, width, pixels, turned_, pixels,
                             woven_ + i * row_pixels() * width, width,
                             sums + matrix * s_.out * width, width, true);
        }
      }
    }
  }

  // dy's pixels as columns, and zeros behind and for images that are not there.
  void turn(int64_t image, int64_t row, int64_t rows, int64_t pixels) {
    const int64_t size = s_.out_width * s_.out,
                  there = std::min(s_.images_at_once(), s_.images - image);
    const auto from = [&](int64_t i, int64_t r) {
      return dy_ + ((image + i) * s_.out_height + row + r) * size;
    };
    const Bf16* all = from(0, 0);
    if (s_.images_at_once() > 1 || pixels != rows * s_.out_width) {
      clear(copied_, pixels * s_.out);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < there; ++i) {
          std::memcpy(static_cast<void*>(copied_ + (r * s_.images_at_once() + i) * size),
                      from(i, r), static_cast<size_t>(size) * sizeof(Bf16));
        }
      }
      all = copied_;
    }
    bodies_.turn(all, s_.out, pixels, s_.out, turned_);
  }

  // Pixels of every stride-th row of x from `first` on, counted with the padding.
  void weave(int64_t image, int64_t first, int64_t rows, int64_t column) {
    const int64_t row_size = s_.out_width * s_.padded_run();
    Bf16* to = woven_;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t y = first + r * s_.stride - s_.padding;
      for (int64_t i = 0; i < s_.images_at_once(); ++i, to += row_size) {
        if (y < 0 || y >= s_.height || image + i >= s_.images) {
          clear(to, row_size);
          continue;
        }
        const int64_t size = s_.width * s_.channels;
        std::memcpy(static_cast<void*>(row_ + s_.padding * s_.channels),
                    x_ + ((image + i) * s_.height + y) * size,
                    static_cast<size_t>(size) * sizeof(Bf16));
        bodies_.weave(row_ + column * s_.channels, s_.stride * s_.channels, s_.out_width,
                      s_.padded_run(), to);
      }
    }
    // Pixels that fill the last tile: dy is 0 there, and this must be a number.
    clear(to, woven_ + woven_size_ - to);
  }

  const Shape& s_;
  const Bf16 *dy_, *x_;
  WeightGradientBodies bodies_;
  Products<Bf16> products_;
  int64_t pixels_, row_size_, woven_size_;
  Scratch scratch_;
  Bf16 *copied_, *turned_, *row_, *woven_;
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
  return conv2d_weight_by(best_isa(), dy, x,
                          {.height = height, .width = width, .stride = stride, .padding = padding});
}

}  // namespace

bool takes_conv2d_weight(const at::Tensor& x, int64_t out, const Conv2dWindow& window) {
  return best_isa() >= Isa::kAmx && fits(x, out, window);
}

at::Tensor conv2d_weight_by(Isa isa, const at::Tensor& dy, const at::Tensor& x,
                            const Conv2dWindow& window) {
  if (!is_image_batch(dy) || !fits(x, dy.size(1), window)) {
    throw InternalError("conv2d_weight: tensors that it does not take");
  }
  const Shape s(x, dy.size(1), window);
  if (dy.size(0) != s.images || dy.size(2) != s.out_height || dy.size(3) != s.out_width) {
    throw InternalError("conv2d_weight: dy does not have the convolution's sizes");
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
  const auto bodies = bodies_of<ColumnSumsBodies>(isa);
  const int64_t matrices = s.window_height * s.columns();
  at::parallel_for(0, s.out, std::max<int64_t>(65536 / (blocks * matrices * s.run()), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       for (int64_t matrix = 0; matrix < matrices; ++matrix) {
                         bodies.add(sums + (matrix * s.out + i) * s.padded_run(), blocks, size,
                                    s.run(), to + (i * matrices + matrix) * s.run());
                       }
                     }
                   });
  return weight;
}

at::Tensor conv2d_weight(const at::Tensor& dy, const at::Tensor& x, const Conv2dWindow& window) {
  static const Operator kOperator(
      "conv2d_weight(Tensor dy, Tensor x, int height, int width, int stride, int padding) -> "
      "Tensor",
      on_cpu);
  return kOperator(dy, x, window.height, window.width, window.stride, window.padding);
}

}  // namespace gallop::kernel

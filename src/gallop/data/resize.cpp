#include "gallop/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "gallop/data/resize_kernels.h"

namespace gallop::data {

namespace {

// Rounds weights that sum to about 1 so that the sum is exactly 1: the largest absorbs the error.
void quantize(std::span<const double> exact, double sum, int16_t* out) {
  constexpr int kOne = 1 << AxisWeights::kBits;
  const double scale = kOne / sum;
  int total = 0;
  size_t largest = 0;
  for (size_t k = 0; k < exact.size(); ++k) {
    out[k] = static_cast<int16_t>(exact[k] * scale + 0.5);
    total += out[k];
    if (exact[k] > exact[largest]) largest = k;
  }
  out[largest] = static_cast<int16_t>(out[largest] + kOne - total);
}

bool is_whole(const PixelView& source, const Box& box) {
  return box.top == 0 && box.left == 0 && box.height == source.height && box.width == source.width;
}

}  // namespace

void AxisWeights::compute(double from, double extent, int size, int outputs) {
  const double scale = extent / outputs;
  const double support = std::max(scale, 1.0);
  const int low = std::max(0, static_cast<int>(std::floor(from)));
  const int high = std::min(size, static_cast<int>(std::ceil(from + extent)));
  begin.resize(static_cast<size_t>(outputs));
  end.resize(static_cast<size_t>(outputs));
  int widest = 1;
  for (size_t i = 0; i < begin.size(); ++i) {
    const double center = from + (static_cast<double>(i) + 0.5) * scale;
    begin[i] = std::clamp(static_cast<int>(center - support + 0.5), low, high - 1);
    end[i] = std::clamp(static_cast<int>(center + support + 0.5), begin[i] + 1, high);
    widest = std::max(widest, end[i] - begin[i]);
  }
  taps = (widest + 1) / 2 * 2;
  weights.assign(begin.size() * static_cast<size_t>(taps), 0);
  exact_.resize(static_cast<size_t>(widest));
  for (size_t i = 0; i < begin.size(); ++i) {
    const double center = from + (static_cast<double>(i) + 0.5) * scale;
    double sum = 0;
    for (int k = begin[i]; k < end[i]; ++k) {
      const double weight = std::max(0.0, 1 - std::abs((k - center + 0.5) / support));
      exact_[static_cast<size_t>(k - begin[i])] = weight;
      sum += weight;
    }
    quantize({exact_.data(), static_cast<size_t>(end[i] - begin[i])}, sum,
             &weights[i * static_cast<size_t>(taps)]);
  }
}

// Rows are blended first, into one row that stays in the L1 cache, and then the columns of that
// row.
void Resizer::resize(const PixelView& source, const Box& box, int height, int width, uint8_t* out) {
  const int channels = source.channels;
  if (is_whole(source, box) && height == source.height && width == source.width) {
    std::memcpy(out, source.pixels, static_cast<size_t>(height) * width * channels);
    return;
  }
  static const ResizeKernels kKernels = best_resize_kernels();
  rows_.compute(box.top, box.height, source.height, height);
  columns_.compute(box.left, box.width, source.width, width);
  const int first = columns_.begin.front();
  for (int& begin : columns_.begin) begin -= first;

  const int count = (columns_.end.back() - first) * channels;
  const size_t beyond = static_cast<size_t>(columns_.taps) * channels + kRowSlack;
  row_.assign(static_cast<size_t>(count) + beyond, 0);
  const size_t stride = static_cast<size_t>(source.width) * channels;
  const uint8_t* left = source.pixels + static_cast<size_t>(first) * channels;
  lines_.resize(static_cast<size_t>(rows_.taps));
  for (int y = 0; y < height; ++y) {
    for (int k = 0; k < rows_.taps; ++k) {
      // Taps beyond the last row have weight 0.
      const int line = std::min(rows_.begin[static_cast<size_t>(y)] + k, source.height - 1);
      lines_[static_cast<size_t>(k)] = left + static_cast<size_t>(line) * stride;
    }
    const auto tap = static_cast<size_t>(y) * static_cast<size_t>(rows_.taps);
    kKernels.blend_rows(lines_.data(), &rows_.weights[tap], rows_.taps, count, row_.data());
    kKernels.blend_columns(row_.data(), columns_.begin.data(), columns_.weights.data(),
                           columns_.taps, width, channels,
                           out + static_cast<size_t>(y) * width * channels);
  }
}

}  // namespace gallop::data

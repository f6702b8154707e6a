#include "gallop/data/pixels/pixel_editor.h"

#include <algorithm>
#include <cmath>

#include "gallop/base/error.h"
#include "gallop/data/pixels/pixel_loops.h"

namespace gallop::data::pixels {

namespace {

const PixelLoops& loops() {
  static const PixelLoops kLoops = best_pixel_loops();
  return kLoops;
}

// The coefficients of torchvision's grid, in single precision from here on.
WarpRow warp_row(const Warp& warp, int height, int width) {
  WarpRow row;
  row.height = height;
  row.width = width;
  const float half_width = static_cast<float>(0.5 * width);
  const float half_height = static_cast<float>(0.5 * height);
  for (size_t i = 0; i < 3; ++i) {
    row.from_x[i] = static_cast<float>(warp.matrix[i]) / half_width;
    row.from_y[i] = static_cast<float>(warp.matrix[3 + i]) / half_height;
  }
  return row;
}

WarpRow warp_row(const Perspective& perspective, int height, int width) {
  const auto& by = perspective.coefficients;
  WarpRow row;
  row.height = height;
  row.width = width;
  row.is_perspective = true;
  const float half_width = static_cast<float>(0.5 * width);
  const float half_height = static_cast<float>(0.5 * height);
  for (size_t i = 0; i < 3; ++i) {
    row.from_x[i] = by[i] / half_width;
    row.from_y[i] = by[3 + i] / half_height;
  }
  row.divisor = {by[6], by[7], 1};
  return row;
}

float row_position(const WarpRow& grid, int y) {
  const float first = grid.is_perspective ? 0.5F : static_cast<float>(1 - grid.height) * 0.5F;
  return first + static_cast<float>(y);
}

// Rounds half to even, as the processor does by default.
uint8_t rounded(float value) { return static_cast<uint8_t>(std::nearbyint(value)); }

float fill_of(const std::vector<double>& fill, int channel) {
  if (fill.empty()) return 0;
  return static_cast<float>(fill[fill.size() == 1 ? 0 : static_cast<size_t>(channel)]);
}

void warped_sources(WarpRow row, int32_t* index) {
  for (int y = 0; y < row.height; ++y, index += row.width) {
    row.y = row_position(row, y);
    loops().nearest(row, index);
  }
}

void rotated_sources(const QuarterTurns& turns, int height, int width, int32_t* index) {
  if (turns.count % 2 != 0 && height != width) {
    throw InternalError("a turn by one quarter needs a square image");
  }
  const int last_y = height - 1, last_x = width - 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      switch (turns.count) {
        case 1: *index++ = x * width + last_x - y; break;
        case 2: *index++ = (last_y - y) * width + last_x - x; break;
        case 3: *index++ = (last_y - x) * width + y; break;
        default: *index++ = y * width + x;
      }
    }
  }
}

}  // namespace

bool nearest_sources(const Operation& operation, int height, int width, int32_t* index) {
  if (const auto* const warp = std::get_if<Warp>(&operation)) {
    warped_sources(warp_row(*warp, height, width), index);
    return true;
  }
  if (const auto* const perspective = std::get_if<Perspective>(&operation)) {
    warped_sources(warp_row(*perspective, height, width), index);
    return true;
  }
  if (const auto* const turns = std::get_if<QuarterTurns>(&operation)) {
    rotated_sources(*turns, height, width, index);
    return true;
  }
  return false;
}

const uint8_t* PixelEditor::apply(std::span<const Operation> operations, const ImageShape& shape,
                                  const uint8_t* source) {
  shape_ = shape;
  tables_ = ChannelTables(shape.channels);
  set_pixels(source);
  for (const Operation& operation : operations) {
    std::visit([&](const auto& one) { add(one); }, operation);
  }
  apply_tables();
  return pixels_;
}

void PixelEditor::add(const Brightness& brightness) {
  tables_.append(brightness_table(brightness.factor));
}

void PixelEditor::add(const Saturation& saturation) {
  if (shape_.channels == 1) return;
  apply_tables();
  uint8_t* const out = writable();
  loops().saturate(pixels_, pixels(), static_cast<float>(saturation.factor),
                   static_cast<float>(1 - saturation.factor), out);
  set_pixels(out);
}

void PixelEditor::add(const Contrast& contrast) {
  uint64_t sum = 0;
  if (shape_.channels == 1) {
    const Histogram histogram = tables_.mapped(0, histograms()[0]);
    for (size_t value = 0; value < 256; ++value) sum += value * histogram[value];
  } else {
    apply_tables();
    sum = loops().gray_sum(pixels_, pixels());
  }
  // torch adds up in single precision, which is exact for sums below 2^24.
  const float mean = static_cast<float>(sum) / static_cast<float>(pixels());
  tables_.append(contrast_table(contrast.factor, mean));
}

void PixelEditor::add(const Sharpness& sharpness) {
  const auto& [height, width, channels] = shape_;
  if (height <= 2 || width <= 2) return;
  apply_tables();
  const ptrdiff_t row_bytes = ptrdiff_t{width} * channels;
  uint8_t* const out = other_buffer();
  std::copy_n(pixels_, row_bytes, out);
  for (ptrdiff_t y = 1; y < height - 1; ++y) {
    const uint8_t* const row = pixels_ + y * row_bytes;
    uint8_t* const to = out + y * row_bytes;
    std::copy_n(row, channels, to);
    loops().sharpen(row - row_bytes + channels, row + channels, row + row_bytes + channels,
                    row_bytes - ptrdiff_t{2} * channels, channels,
                    static_cast<float>(1 - sharpness.factor), to + channels);
    std::copy_n(row + row_bytes - channels, channels, to + row_bytes - channels);
  }
  const ptrdiff_t last = (height - 1) * row_bytes;
  std::copy_n(pixels_ + last, row_bytes, out + last);
  set_pixels(out);
}

void PixelEditor::add(const Hue& hue) {
  if (shape_.channels == 1) return;
  apply_tables();
  uint8_t* const out = writable();
  loops().turn_hue(pixels_, pixels(), static_cast<float>(hue.factor), out);
  set_pixels(out);
}

void PixelEditor::add(const Posterize& posterize) {
  tables_.append(posterize_table(posterize.bits));
}

void PixelEditor::add(const Solarize& solarize) {
  tables_.append(solarize_table(solarize.threshold));
}

void PixelEditor::add(const SolarizeAdd& solarize) {
  tables_.append(solarize_add_table(solarize.addend, solarize.threshold));
}

void PixelEditor::add(const Invert&) { tables_.append(invert_table()); }

void PixelEditor::add(const AutoContrast&) {
  std::array<uint8_t, ChannelTables::kMaxChannels> low, high;
  if (tables_.is_identity() && !counted_) {
    loops().extremes(pixels_, pixels(), shape_.channels, low.data(), high.data());
  } else {
    for (int c = 0; c < shape_.channels; ++c) {
      const auto i = static_cast<size_t>(c);
      const Histogram histogram = tables_.mapped(c, histograms()[i]);
      const auto present = [](uint32_t count) { return count > 0; };
      const auto first = std::find_if(histogram.begin(), histogram.end(), present);
      const auto last = std::find_if(histogram.rbegin(), histogram.rend(), present);
      low[i] = static_cast<uint8_t>(first - histogram.begin());
      high[i] = static_cast<uint8_t>(histogram.rend() - last - 1);
    }
  }
  for (int c = 0; c < shape_.channels; ++c) {
    const auto i = static_cast<size_t>(c);
    tables_.append(c, autocontrast_table(low[i], high[i]));
  }
}

void PixelEditor::add(const Equalize&) {
  for (int c = 0; c < shape_.channels; ++c) {
    const Histogram& histogram = histograms()[static_cast<size_t>(c)];
    tables_.append(c, equalize_table(tables_.mapped(c, histogram)));
  }
}

void PixelEditor::add(const Grayscale&) {
  if (shape_.channels == 1) return;
  apply_tables();
  uint8_t* const out = writable();
  loops().grayscale(pixels_, pixels(), out);
  set_pixels(out);
}

void PixelEditor::add(const QuarterTurns& turns) {
  if (turns.count == 0) return;
  index_.resize(static_cast<size_t>(pixels()));
  rotated_sources(turns, shape_.height, shape_.width, index_.data());
  uint8_t* const out = other_buffer();
  gather_pixels(pixels_, index_.data(), pixels(), tables_, {}, out);
  tables_.reset();
  set_pixels(out);
}

void PixelEditor::add(const Warp& warp) {
  this->warp(warp_row(warp, shape_.height, shape_.width), warp.interpolation, warp.fill);
}

void PixelEditor::add(const Perspective& perspective) {
  warp(warp_row(perspective, shape_.height, shape_.width), perspective.interpolation,
       perspective.fill);
}

void PixelEditor::warp(const WarpRow& grid, Interpolation interpolation,
                       const std::vector<double>& fill) {
  if (fill.size() > 1 && static_cast<int>(fill.size()) != shape_.channels) {
    throw InternalError("a fill needs one value or one per channel");
  }
  if (interpolation == Interpolation::kNearest) {
    warp_nearest(grid, fill);
  } else {
    warp_bilinear(grid, fill);
  }
}

void PixelEditor::warp_nearest(const WarpRow& grid, const std::vector<double>& fill) {
  std::array<uint8_t, 3> outside{};
  for (int c = 0; c < shape_.channels; ++c) {
    outside[static_cast<size_t>(c)] = rounded(fill_of(fill, c));
  }
  const auto width = static_cast<size_t>(shape_.width);
  index_.resize(width);
  uint8_t* const out = other_buffer();
  WarpRow row = grid;
  for (int y = 0; y < shape_.height; ++y) {
    row.y = row_position(row, y);
    loops().nearest(row, index_.data());
    gather_pixels(pixels_, index_.data(), shape_.width, tables_, outside,
                  out + static_cast<size_t>(y) * width * static_cast<size_t>(shape_.channels));
  }
  tables_.reset();
  set_pixels(out);
}

void PixelEditor::warp_bilinear(const WarpRow& grid, const std::vector<double>& fill) {
  apply_tables();
  const auto width = static_cast<size_t>(shape_.width);
  const int channels = shape_.channels;
  index_.resize(4 * width);
  floats_.resize(4 * width);
  corner_values_.resize(5 * width);
  int32_t* const index = index_.data();
  float* const right = floats_.data();
  float* const bottom = right + width;
  float* const mask = bottom + width;
  float* const values = mask + width;
  uint8_t* const at = corner_values_.data();
  uint8_t* const result = at + 4 * width;
  const CornerValues corners{.top_left = at,
                             .top_right = at + width,
                             .bottom_left = at + 2 * width,
                             .bottom_right = at + 3 * width,
                             .right = right,
                             .bottom = bottom};
  const auto count = static_cast<int64_t>(width);
  const auto stride = static_cast<size_t>(channels);
  uint8_t* const out = other_buffer();
  WarpRow row = grid;
  for (int y = 0; y < shape_.height; ++y) {
    row.y = row_position(row, y);
    loops().corners(row, {.top_left = index,
                          .top_right = index + width,
                          .bottom_left = index + 2 * width,
                          .bottom_right = index + 3 * width,
                          .right = right,
                          .bottom = bottom});
    if (!fill.empty()) {
      for (size_t i = 0; i < 4 * width; ++i) at[i] = index[i] < 0 ? 0 : 1;
      loops().interpolate(corners, count, mask);
    }
    uint8_t* const to = out + static_cast<size_t>(y) * width * stride;
    for (int c = 0; c < channels; ++c) {
      for (size_t i = 0; i < 4 * width; ++i) {
        at[i] = index[i] < 0 ? uint8_t{0} : pixels_[ptrdiff_t{channels} * index[i] + c];
      }
      loops().interpolate(corners, count, values);
      if (!fill.empty()) loops().fill_outside(mask, fill_of(fill, c), count, values);
      loops().round(values, count, result);
      for (size_t i = 0; i < width; ++i) to[i * stride + static_cast<size_t>(c)] = result[i];
    }
  }
  set_pixels(out);
}

void PixelEditor::add(const Mix& mix) {
  apply_tables();
  floats_.resize(bytes());
  for (size_t i = 0; i < bytes(); ++i) floats_[i] = mix.original * static_cast<float>(pixels_[i]);
  if (!of_chains_) of_chains_ = std::make_unique<PixelEditor>();
  for (const Chain& chain : mix.chains) {
    const uint8_t* const mixed = of_chains_->apply(chain.operations, shape_, pixels_);
    loops().accumulate(mixed, static_cast<int64_t>(bytes()), chain.weight, floats_.data());
  }
  uint8_t* const out = writable();
  const float by = mix.blended.value_or(1);
  for (size_t i = 0; i < bytes(); ++i) {
    const auto sum = static_cast<uint8_t>(std::min(floats_[i], 255.0F));
    const int difference = mix.blended ? sum - pixels_[i] : 0;
    out[i] = mix.blended ? static_cast<uint8_t>(static_cast<float>(pixels_[i]) +
                                                by * static_cast<float>(difference))
                         : sum;
  }
  set_pixels(out);
}

const std::array<Histogram, ChannelTables::kMaxChannels>& PixelEditor::histograms() {
  if (!counted_) count_values(pixels_, pixels(), shape_.channels, histograms_.data());
  counted_ = true;
  return histograms_;
}

void PixelEditor::apply_tables() {
  if (tables_.is_identity()) return;
  uint8_t* const out = writable();
  map_values(pixels_, pixels(), tables_, out);
  tables_.reset();
  set_pixels(out);
}

uint8_t* PixelEditor::other_buffer() {
  std::vector<uint8_t>& buffer = pixels_ == buffers_[0].data() ? buffers_[1] : buffers_[0];
  if (buffer.size() < bytes()) buffer.resize(bytes());
  return buffer.data();
}

uint8_t* PixelEditor::writable() {
  for (std::vector<uint8_t>& buffer : buffers_) {
    if (pixels_ == buffer.data()) return buffer.data();
  }
  return other_buffer();
}

void PixelEditor::set_pixels(const uint8_t* pixels) {
  pixels_ = pixels;
  counted_ = false;
}

}  // namespace gallop::data::pixels

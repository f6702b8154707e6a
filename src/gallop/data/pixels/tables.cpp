#include "gallop/data/pixels/tables.h"

#include <algorithm>
#include <cmath>

namespace gallop::data::pixels {

namespace {

// Clamped, then towards zero.
uint8_t truncated(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

template <typename Map>
Table table_of(const Map& map) {
  Table table;
  for (int value = 0; value < 256; ++value) table[static_cast<size_t>(value)] = map(value);
  return table;
}

}  // namespace

ChannelTables::ChannelTables(int channels) : channels_(channels) { reset(); }

void ChannelTables::reset() {
  is_identity_ = true;
  tables_.fill(table_of([](int value) { return static_cast<uint8_t>(value); }));
}

void ChannelTables::append(const Table& table) {
  for (int c = 0; c < channels_; ++c) append(c, table);
}

void ChannelTables::append(int channel, const Table& table) {
  is_identity_ = false;
  for (uint8_t& value : tables_[static_cast<size_t>(channel)]) value = table[value];
}

Histogram ChannelTables::mapped(int c, const Histogram& before) const {
  Histogram after{};
  for (size_t value = 0; value < 256; ++value) {
    after[tables_[static_cast<size_t>(c)][value]] += before[value];
  }
  return after;
}

Table brightness_table(double factor) {
  const auto scale = static_cast<float>(factor);
  return table_of([&](int value) { return truncated(static_cast<float>(value) * scale); });
}

Table contrast_table(double factor, float mean) {
  const auto own = static_cast<float>(factor), other = static_cast<float>(1 - factor);
  return table_of(
      [&](int value) { return truncated(std::fma(mean, other, static_cast<float>(value) * own)); });
}

Table posterize_table(int bits) {
  const int mask = 256 - (1 << (8 - bits));
  return table_of([&](int value) { return static_cast<uint8_t>(value & mask); });
}

Table solarize_table(double threshold) {
  const auto from = static_cast<float>(threshold);
  return table_of([&](int value) {
    return static_cast<uint8_t>(static_cast<float>(value) >= from ? 255 - value : value);
  });
}

Table solarize_add_table(int addend, int threshold) {
  return table_of([&](int value) {
    return static_cast<uint8_t>(value < threshold ? std::min(255, value + addend) : value);
  });
}

Table invert_table() {
  return table_of([](int value) { return static_cast<uint8_t>(255 - value); });
}

Table autocontrast_table(uint8_t low, uint8_t high) {
  if (low == high) return table_of([](int value) { return static_cast<uint8_t>(value); });
  const float scale = static_cast<float>(high - low) * static_cast<float>(1.0 / 255);
  return table_of([&](int value) { return truncated(static_cast<float>(value - low) / scale); });
}

Table equalize_table(const Histogram& histogram) {
  uint64_t all = 0, last = 0;
  for (const uint32_t count : histogram) {
    all += count;
    if (count > 0) last = count;
  }
  const uint64_t step = (all - last) / 255;
  if (step == 0) return table_of([](int value) { return static_cast<uint8_t>(value); });
  uint64_t below = 0;
  return table_of([&](int value) {
    const uint64_t mapped = value == 0 ? 0 : (below + step / 2) / step;
    below += histogram[static_cast<size_t>(value)];
    return static_cast<uint8_t>(std::min<uint64_t>(mapped, 255));
  });
}

}  // namespace gallop::data::pixels

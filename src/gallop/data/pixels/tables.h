#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gallop::data::pixels {

using Table = std::array<uint8_t, 256>;
using Histogram = std::array<uint32_t, 256>;

/// One table of values per channel: operations that map each value by itself. Operations in
/// sequence become one table.
class ChannelTables {
 public:
  static constexpr int kMaxChannels = 3;

  explicit ChannelTables(int channels);

  int channels() const { return channels_; }
  bool is_identity() const { return is_identity_; }
  template <size_t kChannels>
  std::array<const uint8_t*, kChannels> channels() const {
    std::array<const uint8_t*, kChannels> tables;
    for (size_t c = 0; c < kChannels; ++c) tables[c] = tables_[c].data();
    return tables;
  }

  void reset();
  /// Maps results further, with the same table for all channels.
  void append(const Table& table);
  void append(int channel, const Table& table);

  /// The histogram of channel `c` after the tables, from that of the pixels before them.
  Histogram mapped(int c, const Histogram& before) const;

 private:
  int channels_;
  bool is_identity_ = true;
  std::array<Table, kMaxChannels> tables_{};
};

Table brightness_table(double factor);
/// `mean`: the mean of the floored gray values, not rounded.
Table contrast_table(double factor, float mean);
Table posterize_table(int bits);
Table solarize_table(double threshold);
Table solarize_add_table(int addend, int threshold);
Table invert_table();
/// `low`, `high`: the extreme values of the channel.
Table autocontrast_table(uint8_t low, uint8_t high);
Table equalize_table(const Histogram& histogram);

}  // namespace gallop::data::pixels

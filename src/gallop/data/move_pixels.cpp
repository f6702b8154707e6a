#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "gallop/base/error.h"
#include "gallop/data/augment.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gallop::data {

namespace {

template <int kChannels>
void reverse_plain(const uint8_t* source, ptrdiff_t count, uint8_t* out) {
  for (ptrdiff_t i = 0; i < count; ++i) {
    std::memcpy(out + i * kChannels, source + (count - 1 - i) * kChannels, kChannels);
  }
}

#if defined(__x86_64__)
// Processes as many whole pixels as fit in 16 bytes at a time, from the end of the row backwards,
// so that nothing beyond it is read; the plain loop does the remainder.
template <int kChannels>
[[gnu::target("ssse3")]] void reverse_ssse3(const uint8_t* source, ptrdiff_t count, uint8_t* out) {
  constexpr int kStep = 16 / kChannels;
  constexpr int kUnused = 16 - kStep * kChannels;
  static constexpr std::array<char, 16> kOrder = [] {
    std::array<char, 16> order{};
    for (int i = 0; i < kStep * kChannels; ++i) {
      order[static_cast<size_t>(i)] =
          static_cast<char>(kUnused + (kStep - 1 - i / kChannels) * kChannels + i % kChannels);
    }
    return order;
  }();
  const __m128i shuffle = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kOrder.data()));
  ptrdiff_t left = count;
  for (; left * kChannels >= 16; left -= kStep) {
    const auto* from = reinterpret_cast<const __m128i*>(source + left * kChannels - 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm_shuffle_epi8(_mm_loadu_si128(from), shuffle));
    out += ptrdiff_t{kStep} * kChannels;
  }
  reverse_plain<kChannels>(source, left, out);
}
#endif

using Reverse = void (*)(const uint8_t*, ptrdiff_t, uint8_t*);

Reverse best_reverse(int channels) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("ssse3")) return channels == 3 ? reverse_ssse3<3> : reverse_ssse3<1>;
#endif
  return channels == 3 ? reverse_plain<3> : reverse_plain<1>;
}

/// Fills one row: the pixels within the source in one copy, those beyond it one by one.
class RowMover {
 public:
  RowMover(const MovePlan& plan, int channels)
      : plan_(plan), channels_(channels), reverse_(best_reverse(channels)) {
    // Output columns [begin_, end_) are source columns first_, first_ + 1, ..., possibly mirrored.
    const int low = plan.step > 0 ? -plan.left : plan.left - plan.width + 1;
    begin_ = std::clamp(low, 0, plan.width);
    end_ = std::clamp(low + plan.width, begin_, plan.width);
    first_ = plan.step > 0 ? plan.left + begin_ : plan.left - end_ + 1;
  }

  void move(const uint8_t* row, uint8_t* out) const {
    for (int x = 0; x < begin_; ++x) outside(row, x, out);
    for (int x = end_; x < plan_.width; ++x) outside(row, x, out);
    const uint8_t* from = row + static_cast<ptrdiff_t>(first_) * channels_;
    uint8_t* to = out + static_cast<ptrdiff_t>(begin_) * channels_;
    const int count = end_ - begin_;
    if (plan_.step < 0) {
      reverse_(from, count, to);
    } else {
      std::memcpy(to, from, static_cast<size_t>(count) * static_cast<size_t>(channels_));
    }
  }

 private:
  void outside(const uint8_t* row, int x, uint8_t* out) const {
    const int column = source_of(plan_.left + plan_.step * x, plan_.width, plan_.border);
    for (int c = 0; c < channels_; ++c) {
      out[x * channels_ + c] = column < 0 ? uint8_t{0} : row[column * channels_ + c];
    }
  }

  const MovePlan& plan_;
  int channels_;
  Reverse reverse_;
  int begin_, end_, first_;
};

}  // namespace

int source_of(int at, int size, Border border) {
  if (at >= 0 && at < size) return at;
  switch (border) {
    case Border::kBlack: return -1;
    case Border::kReflect: return at < 0 ? -at : 2 * (size - 1) - at;
    case Border::kEdge: return std::clamp(at, 0, size - 1);
  }
  throw InternalError("an unknown border");
}

void MovePlan::shift(int rows, int columns) {
  top += rows;
  left += step * columns;
}

void MovePlan::mirror() {
  left += step * (width - 1);
  step = -step;
}

void move_pixels(const MovePlan& plan, int channels, const uint8_t* source, uint8_t* out) {
  const RowMover mover(plan, channels);
  const auto row_bytes = static_cast<size_t>(plan.width) * static_cast<size_t>(channels);
  for (int y = 0; y < plan.height; ++y, out += row_bytes) {
    const int row = source_of(plan.top + y, plan.height, plan.border);
    if (row < 0) {
      std::memset(out, 0, row_bytes);
    } else {
      mover.move(source + static_cast<size_t>(row) * row_bytes, out);
    }
  }
}

}  // namespace gallop::data

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gallop/data/part.h"

namespace gallop::data {

inline constexpr size_t kDetailSide = 16;
/// The fine detail of an image: 16 x 16 gray pixels, each less the mean of the 3 x 3 around it.
using Detail = std::array<int8_t, kDetailSide * kDetailSide>;

/// What identifies the content of an image.
struct Fingerprint {
  uint64_t exact = 0;       ///< Hash of all of it.
  uint64_t perceptual = 0;  ///< perceptual_hash().
  uint64_t mirrored = 0;    ///< That of the image with left and right exchanged.
  Detail detail{};
};

/// Cosine of the angle between the details of two images, at most 1. 0 if either has none.
double similarity(const Detail& one, const Detail& other);
/// The detail of an image with left and right exchanged.
Detail mirror(const Detail& detail);

/// Images of different content that are nearly the same, by index, the first one first.
struct NearPair {
  int64_t first = 0, second = 0;
  double similarity = 0;
  bool is_mirrored = false;  ///< One is nearly the mirror image of the other.
};

inline constexpr int kMaxDistance = 7;
inline constexpr double kMinSimilarity = 0.9;

/// Pairs of images, the second one as it is or mirrored, whose perceptual hashes differ in at most
/// kMaxDistance bits and whose details have a similarity of kMinSimilarity or more. Finds every
/// such pair: by the pigeonhole principle, their hashes agree in one of eight bytes. Of images with
/// the same content only the first is compared; pairs that are similar both ways are listed once.
std::vector<NearPair> near_pairs(const std::vector<Fingerprint>& images, int threads);

/// Samples with the same or nearly the same content.
struct DuplicateGroup {
  std::vector<int64_t> members;  ///< Ascending.
  /// Those whose mirror image is near the first sample, or that of the later split.
  std::vector<int64_t> mirrored{};
  bool is_exact = true;    ///< All of them have the same content.
  bool is_across = false;  ///< They are of several splits.
  double similarity = 1;   ///< The least one of near duplicates.
};

/// Groups of duplicates of equal `hashes`, and of those that `near` joins. Within a split, every
/// member is a duplicate of the first one, and no first one is a duplicate of another. Across
/// splits there is a group for each content in a later split with all its duplicates in earlier
/// ones. Exact groups come first, then those with the highest similarity.
std::vector<DuplicateGroup> group_duplicates(const std::vector<Part>& parts,
                                             const std::vector<uint64_t>& hashes,
                                             const std::vector<NearPair>& near);

}  // namespace gallop::data

#include "gallop/data/quality/duplicates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "gallop/data/parallel.h"

namespace gallop::data {

namespace {

constexpr int kBytes = 8;
constexpr int kValues = 256;

uint8_t byte_of(uint64_t hash, int byte) { return static_cast<uint8_t>(hash >> (8 * byte)); }

uint64_t hash_of(const Fingerprint& image, bool is_mirrored) {
  return is_mirrored ? image.mirrored : image.perceptual;
}

// Images whose hash, or that of their mirror image, has the same value of one byte; ascending.
struct Bucket {
  std::vector<int64_t> images, mirrored;
};

// Pairs in a bucket, whose hashes agree in `byte`, that are nearly the same.
void compare(const std::vector<Fingerprint>& images, const Bucket& bucket, bool is_mirrored,
             int byte, std::vector<NearPair>& pairs) {
  const std::vector<int64_t>& others = is_mirrored ? bucket.mirrored : bucket.images;
  for (const int64_t first : bucket.images) {
    const Fingerprint& one = images[static_cast<size_t>(first)];
    auto at = std::upper_bound(others.begin(), others.end(), first);
    for (; at != others.end(); ++at) {
      const Fingerprint& other = images[static_cast<size_t>(*at)];
      const uint64_t difference = one.perceptual ^ hash_of(other, is_mirrored);
      if (std::popcount(difference) > kMaxDistance) continue;
      // Those whose hashes agree in an earlier byte have been compared there.
      bool is_new = true;
      for (int earlier = 0; earlier < byte; ++earlier) {
        is_new = is_new && byte_of(difference, earlier) != 0;
      }
      if (!is_new) continue;
      const double similar =
          similarity(one.detail, is_mirrored ? mirror(other.detail) : other.detail);
      if (similar >= kMinSimilarity) pairs.push_back({first, *at, similar, is_mirrored});
    }
  }
}

// Keeps the more similar of pairs of the same images, the unmirrored one if they are equal.
void keep_most_similar(std::vector<NearPair>& pairs) {
  const auto images = [](const NearPair& pair) { return std::tie(pair.first, pair.second); };
  std::sort(pairs.begin(), pairs.end(), [&](const NearPair& a, const NearPair& b) {
    return std::tuple(images(a), -a.similarity, a.is_mirrored) <
           std::tuple(images(b), -b.similarity, b.is_mirrored);
  });
  const auto end = std::unique(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return images(a) == images(b);
  });
  pairs.erase(end, pairs.end());
}

// The index of the first sample with the same hash, for each sample.
std::vector<int64_t> first_equals(const std::vector<uint64_t>& hashes) {
  std::unordered_map<uint64_t, int64_t> first;
  std::vector<int64_t> equals;
  for (size_t i = 0; i < hashes.size(); ++i) {
    equals.push_back(first.emplace(hashes[i], static_cast<int64_t>(i)).first->second);
  }
  return equals;
}

// Contents, each identified by the first sample that has it.
class Contents {
 public:
  Contents(const std::vector<Part>& parts, const std::vector<uint64_t>& hashes,
           const std::vector<NearPair>& near)
      : parts_(parts), first_(first_equals(hashes)), samples_(hashes.size()), near_(hashes.size()) {
    for (size_t i = 0; i < first_.size(); ++i) {
      samples_[static_cast<size_t>(first_[i])].push_back(static_cast<int64_t>(i));
    }
    for (const NearPair& pair : near) {
      const int64_t a = first_[static_cast<size_t>(pair.first)];
      const int64_t b = first_[static_cast<size_t>(pair.second)];
      near_[static_cast<size_t>(a)].push_back({b, pair.similarity, pair.is_mirrored});
      near_[static_cast<size_t>(b)].push_back({a, pair.similarity, pair.is_mirrored});
    }
    for (auto& others : near_) {
      std::sort(others.begin(), others.end(), [](const Near& a, const Near& b) {
        return std::tie(a.content, a.similarity) < std::tie(b.content, b.similarity);
      });
    }
  }

  void group_within(Part part, std::vector<DuplicateGroup>& groups) const {
    // The group of the first sample of each content that is a first one.
    std::unordered_map<int64_t, size_t> group_of;
    std::vector<DuplicateGroup> found;
    std::vector<char> is_done(samples_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      const int64_t content = first_[i];
      if (parts_[i] != part || std::exchange(is_done[static_cast<size_t>(content)], 1) != 0) {
        continue;
      }
      const auto near = std::find_if(
          near_[static_cast<size_t>(content)].begin(), near_[static_cast<size_t>(content)].end(),
          [&](const Near& other) { return group_of.contains(other.content); });
      if (near == near_[static_cast<size_t>(content)].end()) {
        group_of[content] = found.size();
        found.emplace_back();
        add(content, part, found.back());
      } else {
        add_near(content, part, *near, found[group_of[near->content]]);
      }
    }
    take(found, groups);
  }

  void group_across(Part later, std::vector<DuplicateGroup>& groups) const {
    std::vector<DuplicateGroup> found;
    for (size_t at = 0; at < samples_.size(); ++at) {
      const auto content = static_cast<int64_t>(at);
      DuplicateGroup group{.is_across = true};
      add(content, later, group);
      if (group.members.empty()) continue;
      const size_t own = group.members.size();
      for (size_t earlier = 0; earlier < static_cast<size_t>(later); ++earlier) {
        add(content, static_cast<Part>(earlier), group);
        for (const Near& other : near_[at]) {
          add_near(other.content, static_cast<Part>(earlier), other, group);
        }
      }
      if (group.members.size() > own) found.push_back(std::move(group));
    }
    take(found, groups);
  }

 private:
  // How another content is near one.
  struct Near {
    int64_t content = 0;
    double similarity = 0;
    bool is_mirrored = false;
  };

  void add(int64_t content, Part part, DuplicateGroup& group) const {
    for (const int64_t i : samples_[static_cast<size_t>(content)]) {
      if (parts_[static_cast<size_t>(i)] == part) group.members.push_back(i);
    }
  }
  void add_near(int64_t content, Part part, const Near& near, DuplicateGroup& group) const {
    const size_t before = group.members.size();
    add(content, part, group);
    if (group.members.size() == before) return;
    group.is_exact = false;
    group.similarity = std::min(group.similarity, near.similarity);
    if (!near.is_mirrored) return;
    for (size_t i = before; i < group.members.size(); ++i) {
      group.mirrored.push_back(group.members[i]);
    }
  }
  static void take(std::vector<DuplicateGroup>& found, std::vector<DuplicateGroup>& groups) {
    for (DuplicateGroup& group : found) {
      if (group.members.size() < 2) continue;
      std::sort(group.members.begin(), group.members.end());
      std::sort(group.mirrored.begin(), group.mirrored.end());
      groups.push_back(std::move(group));
    }
  }

  const std::vector<Part>& parts_;
  std::vector<int64_t> first_;
  std::vector<std::vector<int64_t>> samples_;  // Samples of each content.
  std::vector<std::vector<Near>> near_;
};

}  // namespace

double similarity(const Detail& one, const Detail& other) {
  int64_t squares = 0, other_squares = 0, products = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    squares += int64_t{one[i]} * one[i];
    other_squares += int64_t{other[i]} * other[i];
    products += int64_t{one[i]} * other[i];
  }
  if (squares == 0 || other_squares == 0) return 0;
  return static_cast<double>(products) /
         std::sqrt(static_cast<double>(squares) * static_cast<double>(other_squares));
}

Detail mirror(const Detail& detail) {
  Detail mirrored{};
  for (size_t y = 0; y < kDetailSide; ++y) {
    for (size_t x = 0; x < kDetailSide; ++x) {
      mirrored[y * kDetailSide + x] = detail[y * kDetailSide + kDetailSide - 1 - x];
    }
  }
  return mirrored;
}

std::vector<NearPair> near_pairs(const std::vector<Fingerprint>& images, int threads) {
  std::vector<uint64_t> hashes;
  for (const Fingerprint& image : images) hashes.push_back(image.exact);
  const std::vector<int64_t> first = first_equals(hashes);
  std::vector<Bucket> buckets(size_t{kBytes} * kValues);
  for (size_t i = 0; i < images.size(); ++i) {
    if (first[i] != static_cast<int64_t>(i)) continue;
    for (int byte = 0; byte < kBytes; ++byte) {
      const auto bucket_of = [&](uint64_t hash) -> Bucket& {
        return buckets[static_cast<size_t>(byte) * kValues + byte_of(hash, byte)];
      };
      bucket_of(images[i].perceptual).images.push_back(first[i]);
      bucket_of(images[i].mirrored).mirrored.push_back(first[i]);
    }
  }
  std::vector<std::vector<NearPair>> found(buckets.size());
  run_parallel(threads, static_cast<int64_t>(buckets.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    for (const bool is_mirrored : {false, true}) {
      compare(images, buckets[at], is_mirrored, static_cast<int>(i) / kValues, found[at]);
    }
  });
  std::vector<NearPair> pairs;
  for (const auto& some : found) pairs.insert(pairs.end(), some.begin(), some.end());
  keep_most_similar(pairs);
  return pairs;
}

std::vector<DuplicateGroup> group_duplicates(const std::vector<Part>& parts,
                                             const std::vector<uint64_t>& hashes,
                                             const std::vector<NearPair>& near) {
  const Contents contents(parts, hashes, near);
  std::vector<DuplicateGroup> groups;
  for (size_t i = 0; i < kParts; ++i) {
    contents.group_within(static_cast<Part>(i), groups);
    contents.group_across(static_cast<Part>(i), groups);
  }
  std::stable_sort(
      groups.begin(), groups.end(),
      [](const DuplicateGroup& a, const DuplicateGroup& b) { return a.similarity > b.similarity; });
  return groups;
}

}  // namespace gallop::data

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gallop/data/image.h"
#include "gallop/data/image_shaper.h"
#include "gallop/data/shared_pieces.h"

namespace gallop::data {

/// Caches the decoded pixels of another set in memory, each image on first use, so that start-up
/// does not wait and later epochs read from memory. The memory may be shared with other processes,
/// which reuse each other's decoded images.
class CachedImages final : public ImageSet {
 public:
  /// `images` must outlive this. With `resize`, the center square of each image is cached, resized
  /// to `shape`. `shared` has ImageSet::origins() pieces; null uses private memory.
  CachedImages(const ImageSet& images, const ImageShape& shape, bool resize,
               std::shared_ptr<const SharedPieces> shared = nullptr);

  /// Bytes of a full cache; nullopt if they exceed 64 bits.
  static std::optional<int64_t> bytes_needed(int64_t images, const ImageShape& shape);

  int64_t size() const override { return images_.size(); }
  int64_t label(int64_t index) const override { return images_.label(index); }
  const std::vector<std::string>& class_names() const override { return images_.class_names(); }
  int64_t target_size() const override { return images_.target_size(); }
  const float* targets(int64_t index) const override { return images_.targets(index); }
  std::string describe(int64_t index) const override { return images_.describe(index); }
  int64_t window_blocks() const override { return images_.window_blocks(); }
  int64_t block(int64_t index) const override { return images_.block(index); }
  /// Returns the cached pixels if the channels match, otherwise reads from the underlying set.
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  std::optional<ImageShape> stored_shape() const override { return shaper_.shape(); }
  /// Decodes the image if it is not cached. Throws what ImageShaper::read throws.
  const uint8_t* stored_pixels(int64_t index) const override;

 private:
  enum State : uint8_t { kEmpty, kDecoding, kReady, kOwn };

  State keep(int64_t index) const;
  const uint8_t* kept(int64_t index, State state) const;

  const ImageSet& images_;
  ImageShaper shaper_;
  size_t image_bytes_;
  std::shared_ptr<const SharedPieces> shared_;
  // Used without sharing. Left uninitialized, so that memory is committed as images are cached.
  std::unique_ptr<uint8_t[]> pixels_;
  // Images that could not be stored in shared memory.
  mutable std::mutex own_mutex_;
  mutable std::unordered_map<int64_t, std::vector<uint8_t>> own_;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace gallop::data

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

/// Keeps the decoded pixels of another set in memory, each image from the first time that it is
/// asked for: nothing is waited for at the start, and all later epochs read from memory. That may
/// be shared with other processes, each of which finds what another has decoded.
class CachedImages final : public ImageSet {
 public:
  /// `images` must outlive this. With `resize`, the middle square of each image is kept, in
  /// `shape`. `shared` are pieces for all ImageSet::origins(); null for memory of this process.
  CachedImages(const ImageSet& images, const ImageShape& shape, bool resize,
               std::shared_ptr<const SharedPieces> shared = nullptr);

  /// Bytes that a full cache takes; empty where that is no number of 64 bits.
  static std::optional<int64_t> bytes_needed(int64_t images, const ImageShape& shape);

  int64_t size() const override { return images_.size(); }
  int64_t label(int64_t index) const override { return images_.label(index); }
  const std::vector<std::string>& class_names() const override { return images_.class_names(); }
  std::string describe(int64_t index) const override { return images_.describe(index); }
  /// The kept pixels for as many channels, else the image as the other set gives it.
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  std::optional<ImageShape> stored_shape() const override { return shaper_.shape(); }
  /// Decodes the image where that has not been done. Throws what ImageShaper::read throws.
  const uint8_t* stored_pixels(int64_t index) const override;

 private:
  enum State : uint8_t { kEmpty, kDecoding, kReady, kOwn };

  State keep(int64_t index) const;
  const uint8_t* kept(int64_t index, State state) const;

  const ImageSet& images_;
  ImageShaper shaper_;
  size_t image_bytes_;
  std::shared_ptr<const SharedPieces> shared_;
  // Where nothing is shared. Not initialized, so that memory is taken as images come in.
  std::unique_ptr<uint8_t[]> pixels_;
  // The few that cannot be had from shared memory.
  mutable std::mutex own_mutex_;
  mutable std::unordered_map<int64_t, std::vector<uint8_t>> own_;
  std::unique_ptr<std::atomic<State>[]> states_;
};

}  // namespace gallop::data

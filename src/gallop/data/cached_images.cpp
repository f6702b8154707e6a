#include "gallop/data/cached_images.h"

#include <cstring>
#include <new>

#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

size_t cache_bytes(int64_t images, const ImageShape& shape) {
  const auto bytes = CachedImages::bytes_needed(images, shape);
  if (bytes) return static_cast<size_t>(*bytes);
  throw DeviceError(fmt::format("{} images of {} x {} do not fit memory; set data.in_memory=no",
                                format_count(images), shape.height, shape.width));
}

}  // namespace

std::optional<int64_t> CachedImages::bytes_needed(int64_t images, const ImageShape& shape) {
  return checked_product(std::vector<int64_t>{images, shape.height, shape.width, shape.channels});
}

CachedImages::CachedImages(const ImageSet& images, const ImageShape& shape, bool resize,
                           std::shared_ptr<const SharedPieces> shared)
    : images_(images),
      shaper_(images, shape, resize),
      image_bytes_(static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
                   static_cast<size_t>(shape.channels)),
      shared_(std::move(shared)),
      states_(std::make_unique<std::atomic<State>[]>(static_cast<size_t>(images.size()))) {
  const size_t bytes = cache_bytes(images.size(), shape);
  if (shared_) return;
  pixels_.reset(new (std::nothrow) uint8_t[bytes]);
  if (pixels_) return;
  throw DeviceError(fmt::format("cannot get {} of memory for decoded images; set data.in_memory=no",
                                format_bytes(static_cast<int64_t>(bytes))));
}

void CachedImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  const ImageShape& shape = shaper_.shape();
  if (request.channels != shape.channels && request.channels != 0) {
    return images_.read(index, request, image);
  }
  const uint8_t* pixels = stored_pixels(index);
  image.height = shape.height;
  image.width = shape.width;
  image.channels = shape.channels;
  image.pixels.assign(pixels, pixels + image_bytes_);
}

const uint8_t* CachedImages::stored_pixels(int64_t index) const {
  auto& state = states_[static_cast<size_t>(index)];
  for (;;) {
    State seen = state.load(std::memory_order_acquire);
    if (seen == kReady || seen == kOwn) return kept(index, seen);
    if (seen == kDecoding) {
      state.wait(kDecoding, std::memory_order_acquire);
    } else if (state.compare_exchange_strong(seen, kDecoding, std::memory_order_acquire)) {
      break;
    }
  }
  const auto leave = [&state](State result) {
    state.store(result, std::memory_order_release);
    state.notify_all();
  };
  State result;
  try {
    result = keep(index);
  } catch (...) {
    leave(kEmpty);
    throw;
  }
  leave(result);
  return kept(index, result);
}

CachedImages::State CachedImages::keep(int64_t index) const {
  ImageShaper::Buffers buffers;
  const auto decode = [&] { return shaper_.read(index, nullptr, buffers); };
  if (!shared_) {
    std::memcpy(pixels_.get() + static_cast<size_t>(index) * image_bytes_, decode(), image_bytes_);
    return kReady;
  }
  if (shared_->get(images_.origin(index), images_.stamp(index), decode) != nullptr) return kReady;
  const uint8_t* const pixels = decode();
  const std::lock_guard lock(own_mutex_);
  own_[index].assign(pixels, pixels + image_bytes_);
  return kOwn;
}

const uint8_t* CachedImages::kept(int64_t index, State state) const {
  if (state == kOwn) {
    const std::lock_guard lock(own_mutex_);
    return own_.at(index).data();
  }
  if (shared_) return shared_->at(images_.origin(index));
  return pixels_.get() + static_cast<size_t>(index) * image_bytes_;
}

}  // namespace gallop::data

#include "gallop/base/hash.h"

#include <algorithm>
#include <new>

#include <xxhash.h>

#include "gallop/base/progress.h"

namespace gallop {

namespace {

// Piece size for mapped files, which may have to be read from disk.
constexpr size_t kPieceBytes = size_t{64} << 20;

std::string to_hex(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string xxh3_128(std::string_view bytes) {
  if (bytes.size() > kPieceBytes) {
    Hasher hasher;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPieceBytes))) {
      hasher.update(bytes.data(), std::min(bytes.size(), kPieceBytes));
      note_progress();
    }
    return hasher.digest();
  }
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

uint64_t xxh3_64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct Hasher::State {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> xxh{XXH3_createState(), XXH3_freeState};
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (!state_->xxh) throw std::bad_alloc();
  XXH3_128bits_reset(state_->xxh.get());
}

Hasher::~Hasher() = default;

void Hasher::update(const void* data, size_t bytes) {
  XXH3_128bits_update(state_->xxh.get(), data, bytes);
}

std::string Hasher::digest() const { return to_hex(XXH3_128bits_digest(state_->xxh.get())); }

}  // namespace gallop

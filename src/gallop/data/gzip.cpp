#include "gallop/data/gzip.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <libdeflate.h>
#include <zlib.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr size_t kSmallestMember = 18;  // A header of 10 bytes, CRC and length of 8.
constexpr size_t kLargestRatio = 1032;  // The maximum of DEFLATE.

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};
struct FreeCompressor {
  void operator()(libdeflate_compressor* compressor) const {
    libdeflate_free_compressor(compressor);
  }
};
using Compressor = std::unique_ptr<libdeflate_compressor, FreeCompressor>;

using Decompressor = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

// libdeflate does not distinguish a truncated file from a corrupt one; zlib does.
std::string find_damage(std::string_view member) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return "cannot be decompressed";
  unsigned char sink[1 << 14];
  size_t used = 0;
  int status = Z_OK;
  while (status == Z_OK && (used < member.size() || stream.avail_in > 0 || stream.avail_out == 0)) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min<size_t>(member.size() - used, 1 << 24);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(member.data() + used));
      stream.avail_in = static_cast<uInt>(piece);
      used += piece;
    }
    stream.next_out = sink;
    stream.avail_out = sizeof sink;
    status = inflate(&stream, Z_NO_FLUSH);
  }
  const size_t at = used - stream.avail_in;
  const std::string why = stream.msg != nullptr ? stream.msg : "invalid data";
  inflateEnd(&stream);
  if (status == Z_OK || status == Z_BUF_ERROR)
    return "truncated: the compressed data end too early";
  return fmt::format("corrupt near byte {} of the compressed data ({})", at, why);
}

// The length stated by the last member, modulo 2^32: a first guess that may be wrong.
size_t stated_size(std::string_view compressed) {
  uint32_t size;
  std::memcpy(&size, compressed.data() + compressed.size() - sizeof size, sizeof size);
  return size;
}

void grow(Bytes& bytes, size_t used, size_t limit) {
  const size_t doubled = bytes.size() > limit / 2 ? limit : bytes.size() * 2;
  Bytes larger(std::max(doubled, std::min<size_t>(limit, 1 << 16)));
  if (used > 0) std::memcpy(larger.data(), bytes.data(), used);
  bytes = std::move(larger);
}

}  // namespace

bool looks_like_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

Bytes gunzip(std::string_view compressed, const std::string& name, int64_t max_bytes) {
  const auto fail = [&name](const std::string& why) -> DataError {
    return DataError(fmt::format("{}: {}; get the file again", name, why));
  };
  if (!looks_like_gzip(compressed)) throw fail("not a gzip file");
  if (compressed.size() < kSmallestMember) throw fail(find_damage(compressed));

  const auto limit = static_cast<size_t>(max_bytes);
  const size_t possible =
      compressed.size() > limit / kLargestRatio ? limit : compressed.size() * kLargestRatio;
  const Decompressor decompressor(libdeflate_alloc_decompressor());
  if (!decompressor) throw std::bad_alloc();
  Bytes out(std::min(stated_size(compressed), possible));
  size_t used = 0;
  std::string_view rest = compressed;
  while (rest.find_first_not_of('\0') != std::string_view::npos) {
    if (!looks_like_gzip(rest)) throw fail("corrupt: other data follow the compressed ones");
    size_t consumed = 0, produced = 0;
    const libdeflate_result result =
        libdeflate_gzip_decompress_ex(decompressor.get(), rest.data(), rest.size(),
                                      out.data() + used, out.size() - used, &consumed, &produced);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (out.size() >= limit) {
        throw DataError(
            fmt::format("{}: more than {} when decompressed", name, format_bytes(max_bytes)));
      }
      grow(out, used, limit);
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) throw fail(find_damage(rest));
    used += produced;
    rest.remove_prefix(consumed);
  }
  out.shrink(used);
  return out;
}

std::string gzip(std::string_view bytes) {
  constexpr int kLevel = 6;  // As gzip's own default.
  const Compressor compressor(libdeflate_alloc_compressor(kLevel));
  if (!compressor) throw InternalError("gzip: out of memory");
  std::string compressed(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  compressed.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(),
                                             compressed.data(), compressed.size()));
  return compressed;
}

}  // namespace gallop::data

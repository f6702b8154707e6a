#include <sys/stat.h>

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/left_over.h"
#include "gallop/data/packed.h"
#include "gallop/data/shard.h"

namespace gallop::data {

namespace {

// The format version. Increment the number when the layout, or what counts as an image, changes.
constexpr const char* kFormat = "gallop shard 3";

std::string identity_of(const fs::path& path, const struct stat& info) {
  return fmt::format("{}\n{}\n{}", kFormat, fs::absolute(path).string(), file_state(info));
}

std::string serialize(const Shard& shard, const std::string& identity) {
  std::string out;
  put_text(out, identity);
  put(out, shard.ignored);
  put(out, shard.hidden);
  put_text(out, shard.first_hidden);
  put(out, static_cast<int64_t>(shard.skips.counts().size()));
  for (const SkipCount& skipped : shard.skips.counts()) {
    put_text(out, skipped.reason);
    put(out, skipped.count);
    put_text(out, skipped.first);
  }
  put(out, static_cast<int64_t>(shard.images.size()));
  for (const ShardImage& image : shard.images) {
    put_text(out, image.name);
    put(out, image.offset);
    put(out, image.size);
    put(out, image.label);
  }
  put(out, xxh3_64(out));
  return out;
}

std::optional<Shard> parse(std::string_view entry, const std::string& identity, int64_t file_size) {
  uint64_t checksum;
  if (entry.size() < sizeof checksum) return std::nullopt;
  const std::string_view body = entry.substr(0, entry.size() - sizeof checksum);
  std::memcpy(&checksum, entry.data() + body.size(), sizeof checksum);
  Taker taker(body);
  if (checksum != xxh3_64(body) || taker.take_text() != identity) return std::nullopt;
  Shard shard;
  shard.ignored = taker.take<int64_t>();
  shard.hidden = taker.take<int64_t>();
  shard.first_hidden = taker.take_text();
  const auto reasons = taker.take<int64_t>();
  for (int64_t i = 0; i < reasons && taker.good(); ++i) {
    SkipCount skipped;
    skipped.reason = taker.take_text();
    skipped.count = taker.take<int64_t>();
    skipped.first = taker.take_text();
    shard.skips.add(skipped);
  }
  const auto count = taker.take<int64_t>();
  for (int64_t i = 0; i < count && taker.good(); ++i) {
    ShardImage image;
    image.name = taker.take_text();
    image.offset = taker.take<int64_t>();
    image.size = taker.take<int64_t>();
    image.label = taker.take<int32_t>();
    if (image.size < 0 || image.offset < 0 || image.size > file_size - image.offset) {
      return std::nullopt;
    }
    shard.images.push_back(std::move(image));
  }
  if (!taker.at_end()) return std::nullopt;
  return shard;
}

std::optional<Shard> load(const fs::path& entry, const std::string& identity, int64_t file_size) {
  std::error_code ignored;
  if (!fs::is_regular_file(entry, ignored)) return std::nullopt;
  try {
    return parse(read_file(entry), identity, file_size);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

Shard read_shard_cached(const FileDescriptor& file, const fs::path& path, bool tolerate_damage,
                        const ShardCache& cache) {
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || info.st_size < cache.min_bytes) {
    return read_shard(file, path, tolerate_damage);
  }
  const fs::path entry = cache.folder / xxh3_128(fs::absolute(path).string());
  const std::string identity = identity_of(path, info);
  if (auto shard = load(entry, identity, info.st_size)) return std::move(*shard);
  Shard shard = read_shard(file, path, tolerate_damage);
  if (!shard.damage.empty()) return shard;
  try {
    make_folders(cache.folder);
    remove_left_files(cache.folder);
    write_file_atomically(entry, serialize(shard, identity));
  } catch (const DeviceError&) {
    // Without a cache, the next start is slower; nothing else is affected.
  }
  return shard;
}

}  // namespace gallop::data

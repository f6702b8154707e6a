#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/skips.h"

namespace gallop::data {

/// An image in a shard.
struct ShardImage {
  std::string name;  ///< Name of the member.
  int64_t offset = 0;
  int64_t size = 0;
  int32_t label = -1;  ///< From the .cls member with the same key; -1 if there is none.
};

/// The contents of a WebDataset shard.
struct Shard {
  std::vector<ShardImage> images;  ///< In archive order.
  int64_t ignored = 0;             ///< Members that are neither images nor labels.
  int64_t hidden = 0;              ///< Images with ignored names.
  std::string first_hidden;
  Skips skips;         ///< Skipped members: dangling links, labels without an image, ...
  std::string damage;  ///< The damage if it is tolerated; images before it are listed.
};

/// The exclusive upper limit of labels read from files.
inline constexpr int32_t kMaxClasses = 1 << 20;

/// Reads a shard's headers and labels and follows its links. As in the webdataset library, the key
/// of a member is its name up to the first dot of the base name, and the rest, in lower case, is
/// the field: jpg, png and the other endings of images, and cls for the label. Errors of single
/// members go to Shard::skips. Throws DataError that names the shard and the member if the archive
/// is damaged, unless `tolerate_damage` is set, which records it in Shard::damage.
Shard read_shard(const FileDescriptor& file, const fs::path& path, bool tolerate_damage);

/// A cache of shard contents, so that headers are not read at every start.
struct ShardCache {
  fs::path folder;
  int64_t min_bytes = int64_t{1} << 24;  ///< Smaller shards are not cached.
};

/// Like read_shard(), from the cache if the shard's path, size and modification time match. A
/// damaged or foreign entry is recomputed; an unwritable cache is ignored.
Shard read_shard_cached(const FileDescriptor& file, const fs::path& path, bool tolerate_damage,
                        const ShardCache& cache);

}  // namespace gallop::data

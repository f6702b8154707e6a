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
  int32_t label = -1;  ///< From the .cls of the same key; -1 if there is none.
};

/// The contents of a WebDataset shard.
struct Shard {
  std::vector<ShardImage> images;  ///< In the order of the archive.
  int64_t ignored = 0;             ///< Members that are neither images nor labels.
  int64_t hidden = 0;              ///< Images that are hidden or in folders of an operating system.
  std::string first_hidden;
  Skips skips;         ///< Skipped members: dangling links, labels without an image, ...
  std::string damage;  ///< The damage, if it is tolerated; the images before it are listed.
};

/// Labels read from files are below this.
inline constexpr int32_t kMaxClasses = 1 << 20;

/// Reads a shard's headers and labels, and follows its links. As in the webdataset library, the key
/// of a member is its name up to the first dot of the base name, and the rest, in lower case, is
/// the field: jpg, jpeg and png are images and cls is the label. Errors of single members are in
/// Shard::skips. Throws DataError that names the shard and the member if the archive is damaged;
/// `tolerate_damage` turns that into Shard::damage.
Shard read_shard(const FileDescriptor& file, const fs::path& path, bool tolerate_damage);

/// The cache of shard contents, so that headers are read once and not at every start.
struct ShardCache {
  fs::path folder;
  int64_t min_bytes = int64_t{1} << 24;  ///< Smaller shards are not cached.
};

/// As above, from the cache if the shard's path, size and modification time match. A damaged or
/// foreign entry is recomputed; an unwritable cache is ignored.
Shard read_shard_cached(const FileDescriptor& file, const fs::path& path, bool tolerate_damage,
                        const ShardCache& cache);

}  // namespace gallop::data

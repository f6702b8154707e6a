#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/skips.h"

namespace gallop::data {

/// An image in a shard.
struct ShardImage {
  std::string name;  ///< Of the member.
  int64_t offset = 0;
  int64_t size = 0;
  int32_t label = -1;  ///< From the .cls beside it; -1 where there is none.
};

/// What a shard of the WebDataset format holds.
struct Shard {
  std::vector<ShardImage> images;  ///< In the order of the archive.
  int64_t ignored = 0;             ///< Members that are neither images nor labels.
  int64_t hidden = 0;              ///< Images that are hidden or an operating system's.
  std::string first_hidden;
  Skips skips;         ///< What cannot be taken: links to nowhere, labels without an image, ...
  std::string damage;  ///< Where damage is tolerated, what it is; the images before it are listed.
};

/// Labels read from files are below this.
inline constexpr int32_t kMaxClasses = 1 << 20;

/// Reads a shard's headers and labels, and follows its links. As in the webdataset library, members
/// belong together that have the same name up to the first dot of its last part, and the rest, in
/// small letters, is the field: jpg, jpeg and png are images and cls is the label. What is wrong
/// with single members is in Shard::skips. Throws DataError that names the shard and the member
/// where the archive is damaged; `tolerate_damage` turns that into Shard::damage.
Shard read_shard(const FileDescriptor& file, const fs::path& path, bool tolerate_damage);

/// Where what was found in shards is kept, so that headers are read once and not at every start.
struct ShardCache {
  fs::path folder;
  int64_t min_bytes = int64_t{1} << 24;  ///< Smaller shards are not worth it.
};

/// The same, from the cache where the shard's path, size and time of change are those of the cached
/// one. A damaged or foreign entry is made again; one that cannot be written is left out.
Shard read_shard_cached(const FileDescriptor& file, const fs::path& path, bool tolerate_damage,
                        const ShardCache& cache);

}  // namespace gallop::data

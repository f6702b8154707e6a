#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gallop/base/named_files.h"
#include "gallop/data/labeled_images.h"
#include "gallop/data/parquet_groups.h"

namespace gallop::data {

/// Image files in a column of Parquet files: bytes, or a struct of bytes and path as in Hugging
/// Face datasets, where images without bytes are in files beside the Parquet file.
class ParquetImages final : public LabeledImages {
 public:
  struct Options {
    std::string column;
    bool orient = true;
    int64_t target_size = 0;
  };
  /// `groups` holds the files that images are added of.
  ParquetImages(std::shared_ptr<const ParquetGroups> groups, std::vector<std::string> class_names,
                const Options& options);

  /// The image in a row, from 1, of a file.
  void add(size_t file, int64_t row, int32_t label, std::span<const float> targets = {});

  /// The images that are not in the Parquet files themselves, by the folder of these.
  std::vector<NamedFiles> files() const;

  std::string describe(int64_t index) const override;
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  ImageHeader header(int64_t index) const override;
  std::string identity() const override;
  uint64_t stamp(int64_t index) const override;
  int64_t window_blocks() const override { return groups_->window(); }
  int64_t block(int64_t index) const override;

 private:
  struct Row {
    uint32_t file, group;
    int64_t row;  // In the group.
    int64_t line;
  };

  template <typename Use>
  void open(int64_t index, const Use& use) const;

  std::shared_ptr<const ParquetGroups> groups_;
  std::string name_;
  size_t column_ = 0, path_column_ = 0;
  bool has_paths_ = false, orient_;
  std::vector<Row> rows_;
};

}  // namespace gallop::data

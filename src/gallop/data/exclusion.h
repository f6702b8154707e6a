#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// Whether an item of `data.exclude` is a file of names, one per line: it ends with ".txt".
bool is_name_file(const std::string& item);

/// The names of `data.exclude`, in which files of names have been replaced by their lines. Blank
/// lines and lines that begin with '# ' are left out. Throws DataError for unreadable files.
std::vector<std::string> excluded_names(const std::vector<std::string>& items);

/// The samples that `data.exclude` leaves out of all splits. A name is that of Samples::describe()
/// or the end of it after a '/': "train/cat/7.jpg" and "cat/7.jpg" for "pictures/train/cat/7.jpg".
class Exclusion {
 public:
  explicit Exclusion(const std::vector<std::string>& items);

  bool empty() const { return found_.empty(); }
  /// The indices of a split's samples that remain, ascending.
  std::vector<int64_t> keep(Part part, int64_t size,
                            const std::function<std::string(int64_t)>& describe);
  /// After all splits: "3 training and 2 test samples are left out (data.exclude)". Throws
  /// UsageError for names that no sample has or that several have, DataError if a split is empty.
  std::string finish() const;

 private:
  struct Found {
    int64_t samples = 0;
    std::string first, second;  // Two samples of that name.
  };
  struct Count {
    int64_t samples = 0, excluded = 0;
  };
  std::map<std::string, Found, std::less<>> found_;
  std::array<Count, kParts> counts_;
  std::string example_;  // The name of a sample, for the error.
};

/// Leave samples out of the splits of images, and of any module, and add a note. The first does so
/// before properties of the whole set are determined.
void exclude_images(ImageParts& parts, const std::vector<std::string>& items);
void exclude_samples(DataModule& module, const std::vector<std::string>& items);

}  // namespace gallop::data

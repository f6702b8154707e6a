#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "gallop/data/image.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// A sample that a check of the data has found.
struct FoundSample {
  Part part = Part::kTrain;
  std::string name;     ///< As `data.exclude` takes it.
  std::string label{};  ///< Name of its class; empty without classes.
  std::string value{};  ///< What was measured: "brightness 0.02".
  Image picture{};      ///< A thumbnail; only of the first groups of images, else empty.
};

/// A defect of a data set, with the samples that have it.
struct QualityFinding {
  std::string kind;   ///< "near-duplicates", also the name of the file of `excluded`.
  std::string title;  ///< "Near-duplicates"
  std::string text;   ///< One sentence.
  /// Duplicates of each other are one group; other samples are groups of one, the most extreme
  /// first.
  std::vector<std::vector<FoundSample>> groups{};
  std::vector<std::string> excluded{};  ///< Names for `data.exclude` that remove the defect.
  std::string remedy{};  ///< Another line of the recipe that acts on it, "data.on_error: skip".
};

/// What check_quality() has found in a data set.
struct DataQuality {
  std::string unit = "samples";                           ///< images, rows, texts.
  std::vector<std::pair<std::string, int64_t>> splits{};  ///< Names and sizes.
  std::vector<std::string> checks{};                      ///< What was looked for.
  std::vector<QualityFinding> findings{};
  std::vector<std::string> notes{};  ///< Of the data set.
};

/// The names of samples without the folder that all of them have in common, which `data.exclude`
/// accepts as well. A name with which another one ends keeps its folder: "1.jpg" beside
/// "old/1.jpg".
class SampleNames {
 public:
  explicit SampleNames(const std::vector<std::string>& descriptions);
  std::string shorten(const std::string& description) const;

 private:
  size_t shared_ = 0;                          // Bytes of the folder.
  std::unordered_set<std::string> ambiguous_;  // Short names with which others end.
};

/// "1 image", "1,200 images": a count with the plural of a noun in "s".
std::string counted(int64_t count, const std::string& plural);

/// Adds a finding if the largest class has more than kBalanced times the samples of the smallest,
/// or if a class has no training sample. `can_balance`: data.sampling works, as samples have one
/// class each.
void check_balance(const std::vector<int64_t>& train_counts,
                   const std::vector<std::string>& class_names, DataQuality& quality,
                   bool can_balance = true);

/// Formats as text for a terminal. `excluded_in` is the folder with a file of names for each
/// finding; empty: there are no such files.
std::string to_text(const DataQuality& quality, const std::string& excluded_in);

/// Formats as one JSON object, without pictures.
std::string to_json(const DataQuality& quality);

/// The lines of a recipe that act on a finding: `data.exclude: [FOLDER/KIND.txt]`, and the remedy.
std::vector<std::string> recipe_lines(const QualityFinding& finding,
                                      const std::string& excluded_in);

}  // namespace gallop::data

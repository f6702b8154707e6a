#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/npy.h"

// Arrays whose targets are sequences of classes, without alignment to the inputs.
namespace gallop::data {

/// The task for which arrays have sequences of classes as targets.
inline constexpr const char* kSequenceRecognition = "sequence-recognition";
/// The arrays that hold the length of each target, and of the outputs of each sample.
inline constexpr const char* kTargetLengths = "target_lengths";
inline constexpr const char* kInputLengths = "input_lengths";

/// Classes of an array [N, S] of whole numbers.
struct SequenceClasses {
  bool has_zero = false;
  int64_t largest = -1;
};

/// The classes of sequences that end at kIgnoredTarget or, if `lengths` is not null, have these
/// lengths. Throws DataError that names `file` if a class is negative, a sequence goes on after
/// kIgnoredTarget, or a length does not fit.
SequenceClasses classes_of_sequences(const std::string& file, const std::string& name,
                                     const NpyArray& sequences, const NpyArray* lengths);

/// Throws DataError that names `file` unless each sample has one length of at least `least` and, if
/// `most` is not negative, at most `most`.
void check_lengths(const std::string& file, const std::string& name, const NpyArray& lengths,
                   int64_t rows, int64_t least, int64_t most);

/// The names of `given` or more classes, of which the class `blank` is no target.
struct ClassesWithBlank {
  std::vector<std::string> names;
  int64_t blank = 0;
};

/// Names of the classes, by default their numbers. The blank is class 0; if this is a target, the
/// last class, which is added unless `given` has a name for it. Throws UsageError if `given` has
/// fewer names than there are classes.
ClassesWithBlank add_blank(const SequenceClasses& classes, const std::vector<std::string>& given);

}  // namespace gallop::data

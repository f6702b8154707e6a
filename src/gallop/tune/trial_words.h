#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gallop/tune/study.h"
#include "gallop/tune/sweep.h"

namespace gallop::tune {

/// The parameters that a point has, by name, in their order: words of JSON, texts without quotes.
std::vector<std::pair<std::string, std::string>> parameter_words(const Space& space,
                                                                 const Point& point);

/// The same as one JSON object.
std::string parameters_json(const Space& space, const Point& point);

/// Options for 'gallop train' that make the recipe of a trial.
std::vector<std::string> recipe_options(const RunSpec& spec, const Space& space,
                                        const Point& point);

/// The words of a trial that runs a command. Throws UsageError where one names a parameter that
/// there is not.
std::vector<std::string> command_words(const RunSpec& spec, const Space& space, const Point& point);

/// What runs a trial's point again by itself, in this terminal. Throws as command_words() does.
std::vector<std::string> words_to_repeat(const Study& study, const Trial& trial);

}  // namespace gallop::tune

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gallop/tune/study.h"
#include "gallop/tune/sweep.h"

namespace gallop::tune {

/// The parameters of a point by name, in order, as arguments: JSON, but strings without quotes.
std::vector<std::pair<std::string, std::string>> parameter_args(const Space& space,
                                                                const Point& point);

/// The parameters of a point as one JSON object.
std::string parameters_json(const Space& space, const Point& point);

/// The same for a command: nested parameters are objects.
std::string arguments_json(const RunSpec& spec, const Space& space, const Point& point);

/// The options of 'gallop train' that set the parameters of a trial.
std::vector<std::string> recipe_options(const RunSpec& spec, const Space& space,
                                        const Point& point);

/// The arguments of a trial's command, the program first. Throws UsageError for an unknown
/// parameter or environment variable. `folder` is the trial's, or empty if it has none yet.
std::vector<std::string> command_args(const RunSpec& spec, const Space& space, const Point& point,
                                      const std::string& folder);
/// The same as a line for a POSIX shell, which resolves the environment variables: their values may
/// be secret.
std::string command_line(const RunSpec& spec, const Space& space, const Point& point,
                         const std::string& folder);

/// The error in an argument of the form of a macro, `${NAME}`; empty if it is a valid macro, or not
/// a macro.
std::string wrong_macro(const std::string& word);

/// Whether a trial's command reads its parameters from a file, which must then be written.
bool wants_arguments_file(const RunSpec& spec);
/// The path of that file, beside a trial's folder.
std::string arguments_file(const std::string& folder);

/// A line for a POSIX shell that repeats a trial outside the study; empty if other programs run its
/// trials. Throws as command_line() does.
std::string line_to_repeat(const Study& study, const Trial& trial);

}  // namespace gallop::tune

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop::launch {

/// Expands a Slurm host list, in order: "login,gpu[07-09,12],r[1-2]n[1-2]" is login, gpu07, gpu08,
/// gpu09, gpu12, r1n1, r1n2, r2n1, r2n2. Throws UsageError for an invalid list, more than 100,000
/// hosts, or a name of more than 255 characters.
std::vector<std::string> parse_host_list(std::string_view text);

/// Expands Slurm's numbers of tasks per host: "4(x3),2" is 4, 4, 4, 2. Throws UsageError.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace gallop::launch

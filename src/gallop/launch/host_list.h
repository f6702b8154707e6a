#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gallop::launch {

/// The hosts of a list as Slurm writes it, in its order: "login,gpu[07-09,12],r[1-2]n[1-2]" is
/// login, gpu07, gpu08, gpu09, gpu12, r1n1, r1n2, r2n1, r2n2. Throws UsageError for what is no such
/// list, beyond 100,000 hosts and for names of more than 255 letters.
std::vector<std::string> parse_host_list(std::string_view text);

/// How many tasks each host has, as Slurm writes it: "4(x3),2" is 4, 4, 4, 2. Throws UsageError.
std::vector<int> parse_tasks_per_node(std::string_view text);

}  // namespace gallop::launch

#include "gallop/launch/host_list.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::launch {
namespace {

using Hosts = std::vector<std::string>;
using Tasks = std::vector<int>;

TEST(HostList, ListsAllHostsInOrder) {
  EXPECT_EQ(parse_host_list("login"), (Hosts{"login"}));
  EXPECT_EQ(parse_host_list("b,a.example.org,b"), (Hosts{"b", "a.example.org", "b"}));
  EXPECT_EQ(parse_host_list("gnode[10,20,25-27]"),
            (Hosts{"gnode10", "gnode20", "gnode25", "gnode26", "gnode27"}));
  EXPECT_EQ(parse_host_list("login,gpu[07-09,12],x"),
            (Hosts{"login", "gpu07", "gpu08", "gpu09", "gpu12", "x"}));
  EXPECT_EQ(parse_host_list("r[1-2]n[1-2]-ib"),
            (Hosts{"r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"}));
  EXPECT_EQ(parse_host_list("n[098-101]"), (Hosts{"n098", "n099", "n100", "n101"}));
  EXPECT_EQ(parse_host_list("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(parse_host_list("[1-2]"), (Hosts{"1", "2"}));
}

TEST(HostList, RejectsInvalidLists) {
  for (const char* text :
       {"", ",", "a,", "a,,b", "a[", "a[]", "a[1", "a[1-", "a[1-]", "a[2-1]", "a[x]", "a]", "a[1]]",
        "a[1[2]]", "a[1,]", "a[-1]", "a[1-99999999999999999999]"}) {
    EXPECT_THROW(parse_host_list(text), UsageError) << text;
  }
}

TEST(HostList, RejectsTooManyHosts) {
  for (const char* text :
       {"a[0-100000]", "a[0-9999999999]", "a[0-9999]b[0-9999]", "a[0-60000],b[0-60000]"}) {
    EXPECT_THROW(parse_host_list(text), UsageError) << text;
  }
  EXPECT_EQ(parse_host_list("a[0-99]b[0-999]").size(), 100000);
  EXPECT_EQ(parse_host_list(std::string(255, 'a')).size(), 1);
  EXPECT_THROW(parse_host_list(std::string(256, 'a')), UsageError);
  EXPECT_THROW(parse_host_list(std::string(250, 'a') + "[1-2]" + std::string(9, 'b')), UsageError);
  EXPECT_THROW(parse_host_list(std::string(252, 'a') + "[1000,1]"), UsageError);
}

TEST(TasksPerNode, HaveOneEntryPerHost) {
  EXPECT_EQ(parse_tasks_per_node("4"), (Tasks{4}));
  EXPECT_EQ(parse_tasks_per_node("4(x3),2"), (Tasks{4, 4, 4, 2}));
  EXPECT_EQ(parse_tasks_per_node("1,2(x2)"), (Tasks{1, 2, 2}));
}

TEST(TasksPerNode, RejectInvalidTexts) {
  for (const char* text : {"", ",", "4,", "x", "4(x", "4(x)", "4(x3", "4(3)", "4(x0)", "-1",
                           "4(x100001)", "99999999999"}) {
    EXPECT_THROW(parse_tasks_per_node(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace gallop::launch

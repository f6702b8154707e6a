#include "gallop/data/shard.h"

#include "gallop/data/shard_paths.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

Shard read(const fs::path& path, bool tolerate = false) {
  return read_shard(open_for_reading(path), path, tolerate);
}

Shard read_archive(const std::string& archive, bool tolerate = false) {
  const TestFolder folder;
  return read(folder.add("x.tar", archive), tolerate);
}

std::string error_of(const std::string& archive) {
  return data_error([&] { read_archive(archive); });
}

TEST(Shard, JoinsImagesAndLabelsByTheNameUpToTheFirstDot) {
  const Shard shard = read_archive(make_tar({{"a/1.jpg", "x"},
                                             {"a/1.cls", "3"},
                                             {"a/2.cls", " 14 \n"},
                                             {"a/2.json", "{}"},
                                             {"a/2.PNG", "yy"},
                                             {"a/2.seg.png", "mask"},
                                             {"readme", "x"},
                                             {".hidden.jpg", "x"}}));
  ASSERT_EQ(shard.images.size(), 2u);
  EXPECT_EQ(shard.images[0].name, "a/1.jpg");
  EXPECT_EQ(shard.images[0].label, 3);
  EXPECT_EQ(shard.images[1].name, "a/2.PNG");
  EXPECT_EQ(shard.images[1].label, 14);
  EXPECT_EQ(shard.images[1].size, 2);
  EXPECT_EQ(shard.ignored, 3);
  EXPECT_EQ(shard.hidden, 1);
  EXPECT_EQ(shard.first_hidden, ".hidden.jpg");
  EXPECT_TRUE(shard.skips.empty());
}

// Compares with the samples that the webdataset library makes, by its base_plus_ext().
TEST(Shard, SplitsNamesAtTheFirstDotAsTheReferenceDoes) {
  const Shard shard = read_archive(make_tar({{"a.b/x.jpg", "1"},
                                             {"a.b/x.CLS", "1"},
                                             {"a/y.left.jpg", "12"},
                                             {"a/y.jpg", "123"},
                                             {"a/y.right.jpg", "12"},
                                             {"a/y.cls", "2"},
                                             {"A/y.jpg", "1234"},
                                             {"A/y.cls", "3"},
                                             {"a/z.", ""},
                                             {"__meta__/z.jpg", "x"},
                                             {"__index__.jpg", "12345"},
                                             {"__index__.cls", "4"}}));
  ASSERT_EQ(shard.images.size(), 4u);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(shard.images[static_cast<size_t>(i)].label, i + 1);
    EXPECT_EQ(shard.images[static_cast<size_t>(i)].size,
              std::vector<int>({1, 3, 4, 5})[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(shard.ignored, 4);
  EXPECT_TRUE(shard.skips.empty());
}

TEST(Shard, CountsLabelsAndImagesHiddenBehindSeveralDots) {
  const Shard shard = read_archive(make_tar({{"img.1.jpg", "x"},
                                             {"img.1.cls", "0"},
                                             {"img.2.cls", "1"},
                                             {"pair.left.jpg", "x"},
                                             {"pair.right.png", "x"},
                                             {"pair.cls", "1"}}));
  EXPECT_TRUE(shard.images.empty());
  const auto& counts = shard.skips.counts();
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[0].reason, "name with several dots");
  EXPECT_EQ(counts[0].count, 2);
  EXPECT_TRUE(contains(counts[0].first, "img.1.cls: is the field '1.cls' of the sample 'img'"));
  EXPECT_EQ(counts[1].reason, "image without a label");
  EXPECT_EQ(counts[2].reason, "label without an image");
  EXPECT_TRUE(contains(counts[2].first, "(its fields are left.jpg, right.png)"));
}

TEST(Shard, FollowsLinksOfImagesAndLabels) {
  const Shard shard =
      read_archive(make_tar_link("b.jpg", "a.jpg") + make_tar_link("b.cls", "a.cls", '1') +
                   make_tar_link("c.jpg", "blobs/17") + make_tar_link("c.cls", "b.cls") +
                   make_tar({{"a.jpg", "xy"}, {"a.cls", "5"}, {"blobs/17", "xyz"}}));
  ASSERT_EQ(shard.images.size(), 3u);
  EXPECT_EQ(shard.images[0].name, "b.jpg");
  EXPECT_EQ(shard.images[1].name, "c.jpg");
  EXPECT_EQ(shard.images[1].size, 3);
  EXPECT_EQ(shard.images[2].name, "a.jpg");
  EXPECT_EQ(shard.images[0].offset, shard.images[2].offset);
  for (const ShardImage& image : shard.images) EXPECT_EQ(image.label, 5);
  EXPECT_TRUE(shard.skips.empty());
}

TEST(Shard, ListsEveryImageWhereThereAreNoLabels) {
  const Shard shard = read_archive(make_tar(
      {{"cat/1.small.jpg", "x"}, {"cat/2.jpg", "x"}, {"cat/2.png", "x"}, {"cat/n.txt", ""}}));
  ASSERT_EQ(shard.images.size(), 3u);
  EXPECT_EQ(shard.images[0].name, "cat/1.small.jpg");
  EXPECT_EQ(shard.images[0].label, -1);
  EXPECT_EQ(shard.ignored, 1);
}

struct WrongShard {
  std::string archive, reason, message;
};

TEST(Shard, CountsByReasonWhatCannotBeTaken) {
  std::vector<WrongShard> wrong{
      {make_tar({{"1.cls", "1"}, {"1.bmp", "x"}}), "label without an image",
       "x.tar: 1: has a .cls, but neither .jpg, .jpeg, .png, .gif, .webp, .tif nor .tiff"},
      {make_tar({{"1.cls", "1"}, {"1.jpg", "x"}, {"1.png", "x"}}), "several images for one label",
       "1: has 2 images and one .cls"},
      {make_tar({{"1.cls", "1"}, {"1.cls", "1"}, {"1.jpg", "x"}}), "label given twice",
       "this label twice"},
      {make_tar({{"cat/1.bmp", "x"}}), "image of another format", "cat/1.bmp: is a .bmp file"},
      {make_tar_link("1.jpg", "none") + make_tar({{"1.cls", "1"}}), "link that leads to no member",
       "x.tar: 1.jpg: is a link to 'none', which is not in the archive"},
      {make_tar_link("1.cls", "1.cls") + make_tar({{"1.jpg", "x"}}), "link that leads to no member",
       "x.tar: 1.cls: is a link that leads back to itself"},
      {make_tar_link("cat", "/data/cat") + make_tar_end(), "link that leads to no member",
       "x.tar: cat: is a link that leads out of the archive, to '/data/cat'"},
      {make_tar_member("1.jpg", "x", 'S') + make_tar({{"1.cls", "1"}}),
       "member that is not a plain file", "x.tar: 1.jpg: is stored with holes"},
      {make_tar_member("1.jpg", "", '6') + make_tar({{"1.cls", "1"}}),
       "member that is not a plain file", "x.tar: 1.jpg: is neither a file nor a link"},
  };
  for (const std::string label : {"", "cat", "-1", "1.5", "1 2", "99999999", "1048576",
                                  "000000000000000000000000000000000001"}) {
    wrong.push_back({make_tar({{"1.jpg", "x"}, {"1.cls", label}}), "invalid label",
                     "x.tar: 1.cls: a label is expected to be one number"});
  }
  for (const auto& [archive, reason, message] : wrong) {
    // A valid sample before the error is kept.
    const Shard shard =
        read_archive(make_tar_member("0.jpg", "x") + make_tar_member("0.cls", "3") + archive);
    ASSERT_EQ(shard.images.size(), 1u) << message;
    EXPECT_EQ(shard.images[0].label, 3);
    ASSERT_EQ(shard.skips.counts().size(), 1u) << message;
    EXPECT_EQ(shard.skips.counts()[0].count, 1);
    EXPECT_EQ(shard.skips.counts()[0].reason, reason);
    EXPECT_TRUE(contains(shard.skips.counts()[0].first, message));
    EXPECT_TRUE(contains(data_error([&] { shard.skips.throw_first(); }), "data.on_error=skip"));
  }
}

TEST(Shard, IgnoresLinksAndSpecialMembersThatAreNoSamples) {
  const Shard shard =
      read_archive(make_tar_link("readme.md", "../readme.md") + make_tar_member("pipe", "", '6') +
                   make_tar_link(".cache", "/tmp") + make_tar_link("latest", "a.jpg") +
                   make_tar({{"a.jpg", "x"}, {"a.cls", "1"}}));
  EXPECT_EQ(shard.images.size(), 1u);
  EXPECT_EQ(shard.ignored, 4);
  EXPECT_TRUE(shard.skips.empty());
}

TEST(Shard, KeepsWhatLiesBeforeToleratedDamage) {
  const std::string archive =
      make_tar({{"1.jpg", "x"}, {"1.cls", "3"}, {"2.jpg", "x"}, {"2.cls", "4"}});
  const std::string cut = archive.substr(0, 3 * 1024);
  EXPECT_TRUE(contains(error_of(cut), "truncated after member '2.jpg'"));
  const Shard shard = read_archive(cut, true);
  ASSERT_EQ(shard.images.size(), 1u);
  EXPECT_EQ(shard.images[0].label, 3);
  EXPECT_TRUE(contains(shard.damage, "truncated after member '2.jpg'"));
}

TEST(ShardCache, GivesTheSameAndNoticesChanges) {
  const TestFolder folder;
  const ShardCache cache{.folder = folder.path() / "cache", .min_bytes = 0};
  const auto read_cached = [&](const fs::path& path) {
    return read_shard_cached(open_for_reading(path), path, false, cache);
  };
  const fs::path path = folder.add("x.tar", make_tar({{"1.jpg", "x"}, {"1.cls", "3"}}));
  EXPECT_EQ(read_cached(path).images[0].label, 3);
  ASSERT_EQ(std::distance(fs::directory_iterator(cache.folder), {}), 1);
  const fs::path entry = fs::directory_iterator(cache.folder)->path();

  // A modified entry shows that the cache is used.
  const fs::file_time_type time = fs::last_write_time(path);
  std::string archive = make_tar({{"1.jpg", "x"}, {"1.cls", "7"}});
  FileWriter(path).write(archive);
  fs::last_write_time(path, time);
  EXPECT_EQ(read_cached(path).images[0].label, 3);
  fs::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_EQ(read_cached(path).images[0].label, 7);

  const std::string good = read_file(entry);
  for (size_t at = 0; at < good.size(); at += 9) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file_atomically(entry, damaged);
    EXPECT_EQ(read_cached(path).images[0].label, 7);
    EXPECT_EQ(read_file(entry), good) << "made again";
  }
  FileWriter(path).write(make_tar({{"1.jpg", "x"}, {"2.cls", "x"}, {".1.jpg", "x"}}));
  for (int i = 0; i < 2; ++i) {
    const Shard shard = read_cached(path);
    EXPECT_EQ(shard.hidden, 1);
    EXPECT_EQ(shard.first_hidden, ".1.jpg");
    ASSERT_EQ(shard.skips.counts().size(), 1u);
    EXPECT_EQ(shard.skips.counts()[0].reason, "invalid label");
    EXPECT_TRUE(contains(shard.skips.counts()[0].first, "2.cls"));
  }
  FileWriter(path).write(archive);
  fs::last_write_time(path, time + std::chrono::seconds(2));
  EXPECT_EQ(read_cached(path).images[0].label, 7);
  for (const size_t bytes : {size_t{0}, size_t{5}, good.size() - 1}) {
    write_file_atomically(entry, good.substr(0, bytes));
    EXPECT_EQ(read_cached(path).images[0].label, 7);
  }
}

TEST(ShardCache, WorksWhereNothingCanBeWritten) {
  const TestFolder folder;
  const fs::path path = folder.add("x.tar", make_tar({{"1.jpg", "x"}, {"1.cls", "3"}}));
  const ShardCache cache{.folder = path / "no folder", .min_bytes = 0};
  EXPECT_EQ(read_shard_cached(open_for_reading(path), path, false, cache).images.size(), 1u);
}

TEST(ShardPaths, SpellsBracesOut) {
  EXPECT_EQ(expand_braces("a.tar"), std::vector<std::string>{"a.tar"});
  EXPECT_EQ(expand_braces("s-{08..11}.tar"),
            (std::vector<std::string>{"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"}));
  EXPECT_EQ(expand_braces("{a,b}-{1..2}"), (std::vector<std::string>{"a-1", "a-2", "b-1", "b-2"}));
  for (const std::string wrong : {"a{", "a}", "}a{", "{1..x}", "{2..1}", "{..}", "{0..999999999}",
                                  "{0..99999}{0..99999}", "{1..2"}) {
    EXPECT_TRUE(contains(data_error([&] { expand_braces(wrong); }), "data.path: " + wrong))
        << wrong;
  }
}

}  // namespace
}  // namespace gallop::data

# cmake -DFOLDER=src -DVERSION=0.1.0 -DOUTPUT=plugin_abi.h -P HashHeaders.cmake: writes a header with the version and a
# hash of all headers below the folder, by which a program and its plug-ins identify each other (gallop/app/plugin.h).
file(GLOB_RECURSE headers RELATIVE ${FOLDER} ${FOLDER}/*.h)
list(SORT headers)
set(all "")
foreach(header IN LISTS headers)
  file(SHA256 ${FOLDER}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 all "${all}")
string(SUBSTRING ${all} 0 16 all)
file(WRITE ${OUTPUT} "#pragma once\n\n#define GALLOP_HEADERS \"Gallop ${VERSION}, headers ${all}\"\n")

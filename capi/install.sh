#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs libraries, headers, the tool and what `kdtr bench` has beside it below $DESTDIR$PREFIX
# (default /usr/local).
set -eu
root=${DESTDIR:-}${PREFIX:-/usr/local}
mkdir -p "$root/bin" "$root/lib" "$root/include" "$root/lib/pkgconfig"
cp out/kdtr "$root/bin/"
for library in kdtr kdtr_cuda; do
    [ -f "out/lib$library.so.0" ] || continue
    cp "out/lib$library.so.0" "$root/lib/"
    ln -sf "lib$library.so.0" "$root/lib/lib$library.so"
done
# `kdtr bench`: its library, which nothing links with, facts about the build, limits.
if [ -f out/libkdtr_bench.so.0 ]; then
    mkdir -p "$root/lib/kdtr"
    cp out/libkdtr_bench.so.0 "$root/lib/"
    cp out/kit.txt out/limits.txt "$root/lib/kdtr/"
fi
cp capi/kdtr.h capi/kdtr_bundle.h capi/kdtr_cuda.h capi/kdtr_step.h "$root/include/"
version=$(awk '/define KDTR_VERSION_(MAJOR|MINOR|PATCH)/ { v = v s $3; s = "." } END { print v }' \
    capi/kdtr.h)
cat > "$root/lib/pkgconfig/kdtr.pc" << END
prefix=${PREFIX:-/usr/local}
Name: kdtr
Description: Tree-verify MLA attention
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lkdtr
END
echo "installed kdtr $version to $root"

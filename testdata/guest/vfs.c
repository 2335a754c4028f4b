// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files: the functions on the way from a system call to a file, over a few
 * files in memory. The path is a kernel's (sys_open, do_sys_open,
 * do_sys_openat2, do_filp_open, path_openat, vfs_open), and so are the
 * signatures and the order of the fields that probes read.
 *
 * Tasks may be in here at once: whatever is shared is taken by one locked
 * compare-and-exchange.
 */

#define AT_FDCWD (-100)
#define O_ACCMODE 3
#define O_CREAT 0100
#define O_EXCL 0200
#define O_TRUNC 01000
#define O_APPEND 02000
#define NR_INODES 32
#define NR_FILES 64
#define FILE_BYTES 1024

struct inode {
	umode_t i_mode;
	u32 i_uid;
	u64 i_ino;
	loff_t i_size;
	u8 *i_data;
};

struct qstr {
	u32 hash, len;
	const u8 *name;
};

struct dentry {
	u32 d_flags;
	u32 d_seq;
	u64 d_hash[2];
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	u8 d_iname[64];
};

struct vfsmount;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	u64 f_count;
	u32 f_mode;
	struct path f_path;
	struct inode *f_inode;
	u32 f_flags;
	loff_t f_pos;
};

struct filename {
	const char *name;
	const char *uptr;
	int refcnt;
	char iname[64];
};

struct open_how {
	u64 flags, mode, resolve;
};

static u8 inode_data[NR_INODES][FILE_BYTES];
static struct inode inode_table[NR_INODES];
static struct dentry dentry_table[NR_INODES];
static u64 inode_used[NR_INODES];
static struct file file_table[NR_FILES];
static struct file *fd_table[NR_FILES];

#define IS_ERR(p) ((u64)(p) >= (u64)-4095)
#define ERR_PTR(e) ((void *)(s64)(e))
#define PTR_ERR(p) ((s64)(p))

/* What the little disk holds before anyone writes. */
static const struct {
	const char *name, *text;
} disk[] = {
	{ "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n" },
	{ "/etc/hostname", "kprobelab\n" },
	{ "/etc/ld.so.cache", "glibc-ld.so.cache1.1" },
	{ "/proc/version", "Linux version 6.1.0-kprobelab\n" },
	{ "/dev/null", "" },
};

static bool take(u64 *slot)
{
	return __sync_bool_compare_and_swap(slot, 0, 1);
}

static noinline struct dentry *d_alloc(const char *name)
{
	struct dentry *d;
	int i;

	for (i = 0; i < NR_INODES; i++)
		if (take(&inode_used[i]))
			break;
	if (i == NR_INODES)
		return NULL;
	d = &dentry_table[i];
	strncpy((char *)d->d_iname, name, sizeof(d->d_iname) - 1);
	d->d_name.len = strlen((char *)d->d_iname);
	d->d_name.name = d->d_iname;
	inode_table[i].i_mode = 0100644;
	inode_table[i].i_ino = i + 2;
	inode_table[i].i_size = 0;
	inode_table[i].i_data = inode_data[i];
	d->d_inode = &inode_table[i];
	WRITE_ONCE(d->d_flags, 1);
	return d;
}

/* A file already in memory. */
static noinline struct dentry *d_lookup(const char *name)
{
	int i;

	for (i = 0; i < NR_INODES; i++)
		if (READ_ONCE(dentry_table[i].d_flags) && !strcmp((char *)dentry_table[i].d_iname, name))
			return &dentry_table[i];
	return NULL;
}

/*
 * Asks the disk, which takes a while: another task may run meanwhile, and may
 * have brought the same file in.
 */
static noinline struct dentry *lookup_slow(const char *name)
{
	struct dentry *d;
	size_t i;

	io_schedule();
	d = d_lookup(name);
	if (d)
		return d;
	for (i = 0; i < ARRAY_SIZE(disk); i++) {
		if (strcmp(disk[i].name, name))
			continue;
		d = d_alloc(name);
		if (d) {
			d->d_inode->i_size = strlen(disk[i].text);
			memcpy(d->d_inode->i_data, disk[i].text, d->d_inode->i_size);
		}
		return d;
	}
	return NULL;
}

noinline struct filename *getname(const char *filename, struct filename *result)
{
	if (!filename)
		return ERR_PTR(-EFAULT);
	if (strnlen(filename, sizeof(result->iname)) == sizeof(result->iname))
		return ERR_PTR(-ENAMETOOLONG);
	if (!*filename)
		return ERR_PTR(-ENOENT);
	strncpy(result->iname, filename, sizeof(result->iname));
	result->name = result->iname;
	result->uptr = filename;
	result->refcnt = 1;
	return result;
}

noinline void putname(struct filename *name)
{
	name->refcnt--;
	barrier();
}

noinline struct file *alloc_empty_file(int flags)
{
	int i;

	for (i = 0; i < NR_FILES; i++)
		if (take(&file_table[i].f_count)) {
			file_table[i].f_flags = flags;
			file_table[i].f_pos = 0;
			return &file_table[i];
		}
	return ERR_PTR(-EMFILE);
}

/* Frees the slot of a name that is gone and not open. */
static noinline void d_reuse(struct dentry *d)
{
	int i;

	for (i = 0; i < NR_FILES; i++)
		if (READ_ONCE(file_table[i].f_path.dentry) == d)
			return;
	WRITE_ONCE(inode_used[d - dentry_table], 0);
}

noinline void fput(struct file *file)
{
	struct dentry *d = file->f_path.dentry;

	file->f_inode = NULL;
	file->f_path.dentry = NULL;
	WRITE_ONCE(file->f_count, 0);
	if (d && !READ_ONCE(d->d_flags))
		d_reuse(d);
}

noinline int vfs_open(const struct path *path, struct file *file)
{
	file->f_path = *path;
	file->f_inode = path->dentry->d_inode;
	file->f_mode = ((file->f_flags & O_ACCMODE) + 1) & O_ACCMODE;
	if (file->f_flags & O_TRUNC)
		file->f_inode->i_size = 0;
	return 0;
}

static noinline struct file *path_openat(const char *name, const struct open_how *how)
{
	struct path path = { NULL, d_lookup(name) };
	struct file *file;
	int err;

	if (!path.dentry)
		path.dentry = lookup_slow(name);
	if (path.dentry && (how->flags & O_CREAT) && (how->flags & O_EXCL))
		return ERR_PTR(-EEXIST);
	if (!path.dentry && !(how->flags & O_CREAT))
		return ERR_PTR(-ENOENT);
	if (!path.dentry)
		path.dentry = d_alloc(name);
	if (!path.dentry)
		return ERR_PTR(-ENOSPC);
	file = alloc_empty_file(how->flags);
	if (IS_ERR(file))
		return file;
	err = vfs_open(&path, file);
	if (err) {
		fput(file);
		return ERR_PTR(err);
	}
	return file;
}

noinline struct file *do_filp_open(int dfd, struct filename *pathname, const struct open_how *how)
{
	struct file *f = path_openat(pathname->name, how);

	barrier();
	return f;
}

/* Descriptors begin at 3: 0 to 2 are somebody else's. */
noinline int fd_install_file(struct file *file)
{
	int fd;

	for (fd = 3; fd < NR_FILES; fd++)
		if (__sync_bool_compare_and_swap(&fd_table[fd], NULL, file))
			return fd;
	return -EMFILE;
}

noinline long do_sys_openat2(int dfd, const char *filename, struct open_how *how)
{
	struct filename buf, *tmp = getname(filename, &buf);
	struct file *f;
	long fd;

	if (IS_ERR(tmp))
		return PTR_ERR(tmp);
	f = do_filp_open(dfd, tmp, how);
	fd = IS_ERR(f) ? PTR_ERR(f) : fd_install_file(f);
	putname(tmp);
	return fd;
}

noinline long do_sys_open(int dfd, const char *filename, int flags, umode_t mode)
{
	struct open_how how = { .flags = flags, .mode = mode };
	long fd = do_sys_openat2(dfd, filename, &how);

	barrier();
	return fd;
}

noinline long sys_open(const char *filename, int flags, int mode)
{
	long fd = do_sys_open(AT_FDCWD, filename, flags, mode);

	barrier();
	return fd;
}

noinline long sys_openat(int dfd, const char *filename, int flags, umode_t mode)
{
	long fd = do_sys_open(dfd, filename, flags, mode);

	barrier();
	return fd;
}

static noinline struct file *fget(u32 fd)
{
	return fd < NR_FILES ? READ_ONCE(fd_table[fd]) : NULL;
}

/* May this file be read or written there? */
noinline int rw_verify_area(int write, struct file *file, const loff_t *ppos, size_t count)
{
	if (!(file->f_mode & (write ? 2 : 1)))
		return -EBADF;
	if (*ppos < 0 || (ssize_t)count < 0)
		return -EINVAL;
	return 0;
}

noinline ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)
{
	struct inode *inode = file->f_inode;
	loff_t at = *pos;
	int err = rw_verify_area(0, file, pos, count);

	if (err)
		return err;
	if (at >= inode->i_size)
		return 0;
	if (count > (size_t)(inode->i_size - at))
		count = inode->i_size - at;
	memcpy(buf, inode->i_data + at, count);
	*pos = at + count;
	return count;
}

noinline ssize_t vfs_write(struct file *file, const char *buf, size_t count, loff_t *pos)
{
	struct inode *inode = file->f_inode;
	loff_t at = *pos;
	int err = rw_verify_area(1, file, pos, count);

	if (err)
		return err;
	if (file->f_flags & O_APPEND)
		at = inode->i_size;
	if (at >= FILE_BYTES)
		return count ? -ENOSPC : 0;
	if (count > (size_t)(FILE_BYTES - at))
		count = FILE_BYTES - at;
	memcpy(inode->i_data + at, buf, count);
	at += count;
	if (at > inode->i_size)
		inode->i_size = at;
	*pos = at;
	return count;
}

noinline ssize_t ksys_read(u32 fd, char *buf, size_t count)
{
	struct file *f = fget(fd);
	loff_t pos;
	ssize_t n;

	if (!f)
		return -EBADF;
	pos = f->f_pos;
	n = vfs_read(f, buf, count, &pos);
	if (n >= 0)
		f->f_pos = pos;
	return n;
}

noinline ssize_t ksys_write(u32 fd, const char *buf, size_t count)
{
	struct file *f = fget(fd);
	loff_t pos;
	ssize_t n;

	if (!f)
		return -EBADF;
	pos = f->f_pos;
	n = vfs_write(f, buf, count, &pos);
	if (n >= 0)
		f->f_pos = pos;
	return n;
}

noinline long sys_read(u32 fd, char *buf, size_t count)
{
	long n = ksys_read(fd, buf, count);

	barrier();
	return n;
}

noinline long sys_write(u32 fd, const char *buf, size_t count)
{
	long n = ksys_write(fd, buf, count);

	barrier();
	return n;
}

noinline int filp_close(struct file *file, void *id)
{
	fput(file);
	return 0;
}

noinline long sys_close(u32 fd)
{
	struct file *f = fget(fd);

	if (!f || !__sync_bool_compare_and_swap(&fd_table[fd], f, NULL))
		return -EBADF;
	return filp_close(f, NULL);
}
